/** An instant as everywhere in the domain: ISO 8601, UTC, exactly three decimals, e.g. `2026-01-31T09:00:00.000Z`. */
export type Instant = string;

/** The only source of time in the domain and in SQL. Replaced by a hand-set one in tests. */
export abstract class Clock {
  abstract now(): Instant;
}

export class SystemClock extends Clock {
  now(): Instant {
    return new Date().toISOString();
  }
}

export function plusMilliseconds(instant: Instant, milliseconds: number): Instant {
  return new Date(Date.parse(instant) + milliseconds).toISOString();
}

/** The later of two instants. Text comparison is time comparison, because the format has a fixed width. */
export function laterOf(a: Instant, b: Instant): Instant {
  return a >= b ? a : b;
}
