/** In code points. */
export const LONGEST_ID = 128;

// U+0000 and lone surrogates are no text to PostgreSQL; U+FFFD is what is left of text that was broken on the way.
const USABLE = new RegExp(`^[^\\u0000\\ud800-\\udfff\\ufffd]{1,${LONGEST_ID}}$`, 'u');

/** Holds no UUID, so it names no row; it takes exactly a missing id's path through both engines. */
export const NO_SUCH_ID = 'no-such-id';

/**
 * The id as it may be bound to a statement. One that no row is found by (empty, over 128 code points, not text) becomes
 * {@link NO_SUCH_ID} and is not found like any other (A3).
 */
export function usableId(id: string): string {
  return USABLE.test(id) ? id : NO_SUCH_ID;
}
