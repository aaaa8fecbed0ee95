// U+0000 and lone surrogates cannot live in PostgreSQL's jsonb, so both engines refuse them alike.
// eslint-disable-next-line no-control-regex -- NUL is exactly what is looked for
const UNSTORABLE = /[\u0000\ud800-\udfff]/u;

/** The same rule as a JSON Schema `pattern` (which is matched with the `u` flag). */
export const STORABLE_TEXT_PATTERN = '^[^\\u0000\\ud800-\\udfff]*$';

/** Whether both databases can hold the text. */
export function isStorableText(text: string): boolean {
  return !UNSTORABLE.test(text);
}

/** Unicode code points: an emoji outside the basic plane counts one. */
export function codePointLength(text: string): number {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}
