const USABLE = /^[\x20-\x7e]{1,128}$/;

/** Holds no UUID, so it names no row; printable, so it takes exactly a missing id's path through both engines. */
export const NO_SUCH_ID = 'no-such-id';

/**
 * The id as it may be bound to a statement. One that no row can have (empty, not printable ASCII, over 128
 * characters: U+0000 alone would be a PostgreSQL error) becomes {@link NO_SUCH_ID} and is not found like any other (A3).
 */
export function usableId(id: string): string {
  return USABLE.test(id) ? id : NO_SUCH_ID;
}
