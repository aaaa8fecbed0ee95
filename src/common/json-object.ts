/** The members of a JSON object given as text; none for any other text, which rows of another hand may hold. */
export function jsonObject(text: string): Record<string, unknown> {
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === 'object' && read !== null && !Array.isArray(read) ? { ...read } : {};
  } catch {
    return {};
  }
}
