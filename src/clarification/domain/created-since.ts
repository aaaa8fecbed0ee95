import type { Instant } from '../../common/clock.js';
import { ValidationError } from '../../common/domain-error.js';

const DATE_TIME =
  /^(?<date>\d{4}-\d{2}-\d{2})[Tt](?<hour>\d{2}):(?<minute>\d{2}):(?<second>\d{2})(?:\.(?<fraction>\d+))?(?:[Zz]|(?<sign>[+-])(?<offsetHour>\d{2}):(?<offsetMinute>\d{2}))$/;

// What both databases can compare; no row is outside of it.
const EARLIEST = Date.parse('0001-01-01T00:00:00.000Z');
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * The instant from which on things are wanted (L8): an RFC 3339 date-time with any offset. Rows are exact to the
 * millisecond, so a finer bound is rounded up; down would let in a row from before it.
 *
 * @throws ValidationError naming created_since, for a date alone too (L13)
 */
export function parseCreatedSince(text: string): Instant {
  const fields = DATE_TIME.exec(text)?.groups;
  const time = fields === undefined ? undefined : timeOf(fields);
  if (time === undefined) {
    throw new ValidationError(
      'created_since',
      'must be an RFC 3339 date-time such as 2026-01-31T09:00:00Z or 2026-01-31T10:00:00+01:00 (in a URL write + as %2B)',
    );
  }
  return new Date(Math.min(Math.max(time, EARLIEST), LATEST)).toISOString();
}

function timeOf(fields: Readonly<Record<string, string | undefined>>): number | undefined {
  const midnight = midnightOf(fields['date'] ?? '');
  const [hour, minute, second, offsetHour, offsetMinute] = [
    fields['hour'],
    fields['minute'],
    fields['second'],
    fields['offsetHour'],
    fields['offsetMinute'],
  ].map((digits) => Number(digits ?? 0)) as [number, number, number, number, number];
  if (midnight === undefined || hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) {
    return undefined;
  }
  const offset = (offsetHour * 60 + offsetMinute) * (fields['sign'] === '-' ? -1 : 1);
  const wholeMinute = midnight + (hour * 60 + minute - offset) * 60_000;
  // A leap second ends a UTC day. POSIX time has no place for it, so it and its fractions are the next midnight.
  if (second === 60) return (wholeMinute + 60_000) % 86_400_000 === 0 ? wholeMinute + 60_000 : undefined;
  const fraction = fields['fraction'] ?? '';
  const milliseconds = Number(fraction.slice(0, 3).padEnd(3, '0')) + (/[1-9]/.test(fraction.slice(3)) ? 1 : 0);
  return wholeMinute + second * 1000 + milliseconds;
}

/** Undefined for a day that its month does not have, which Date would move into the next one. */
function midnightOf(date: string): number | undefined {
  const time = Date.parse(`${date}T00:00:00.000Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date) ? time : undefined;
}
