import { expect } from '@jest/globals';

/** Far above what anything waited for takes, and below a test's own time limit, which says nothing about why. */
const GIVE_UP_MS = 20_000;

/** Waits until the condition holds, asking again and again; one that does not come to hold is an unmet expectation. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + GIVE_UP_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) expect(`never: ${condition.toString()}`).toBe('true in the end');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
