import { Clock, plusMilliseconds, type Instant } from '../../src/common/clock.js';

/** A clock that stands still until it is moved. */
export class TestClock extends Clock {
  constructor(private instant: Instant = '2026-01-31T09:00:00.000Z') {
    super();
  }

  now(): Instant {
    return this.instant;
  }

  set(instant: Instant): void {
    this.instant = instant;
  }

  advance(milliseconds: number): void {
    this.instant = plusMilliseconds(this.instant, milliseconds);
  }
}
