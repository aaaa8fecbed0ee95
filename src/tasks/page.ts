const DEFAULT_PAGE_SIZE = 50;
const LARGEST_PAGE_SIZE = 200;

/** L10: below 1 or absent is the default, above the largest is the largest. */
export function pageSize(limit: number | undefined): number {
  if (limit === undefined || limit < 1) return DEFAULT_PAGE_SIZE;
  return Math.min(limit, LARGEST_PAGE_SIZE);
}

/** L9: an empty filter or cursor is not given. */
export function given(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : text;
}
