type ParseText = (text: string) => string | number;

const asIs: ParseText = (text) => text;

/** PostgreSQL's object ids of the types whose text form is not what a row should hold. */
const PARSERS: Record<number, ParseText> = {
  16: (text) => (text === 't' ? 1 : 0), // bool, as SQLite gives it
  20: Number, // int8: counts and sums; nothing of ours reaches 2^53
  21: Number, // int2
  23: Number, // int4
  26: Number, // oid
  700: Number, // float4
  701: Number, // float8
  1700: Number, // numeric: sums of int8
  1184: instantOf, // timestamptz
};

/**
 * For one pool's `types`: rows hold text and numbers alone, times as ISO text with milliseconds and Z. The driver's
 * own parsers are global and would give dates, booleans, objects, and text for counts.
 */
export const ROW_TYPES = {
  getTypeParser: (oid: number, format?: string): ParseText => (format === 'binary' ? asIs : (PARSERS[oid] ?? asIs)),
};

const UTC_TEXT = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00$/;

function instantOf(text: string): string {
  // Sessions speak UTC, so nearly all take this path, which needs no Date; `infinity` and the years before 1 stay text.
  const parts = UTC_TEXT.exec(text);
  if (parts !== null) return `${parts[1]}T${parts[2]}.${(parts[3] ?? '').padEnd(3, '0').slice(0, 3)}Z`;
  const milliseconds = Date.parse(text);
  return Number.isNaN(milliseconds) ? text : new Date(milliseconds).toISOString();
}
