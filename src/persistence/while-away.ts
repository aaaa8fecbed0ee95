import { setTimeout as pause } from 'node:timers/promises';
import type { Deadline } from '../common/deadline.js';
import { TemporarilyUnavailableError } from '../common/domain-error.js';

/** Between two attempts to ask a database that is away. */
const PAUSE_MS = 100;

/**
 * Repeats `work`, which must be safe to repeat, while the database is out of reach, until the budget ends.
 * @throws TemporarilyUnavailableError with what `work` threw last as its cause; anything else it throws, at once
 */
export async function whileAway<T>(budget: Deadline, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof TemporarilyUnavailableError)) throw error;
      if (budget.remainingMs <= PAUSE_MS) throw budget.expiry(error);
      await pause(PAUSE_MS);
    }
  }
}
