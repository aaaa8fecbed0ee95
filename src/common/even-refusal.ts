/** Milliseconds: a hundred times what looking at a foreign thing costs more than finding none, and too little to be noticed. */
const STEP_MS = 5;

/**
 * How many milliseconds a "not found" is held back: until the whole step since its request began. A thing that exists is
 * fetched before it is refused, which takes some microseconds that a missing one does not; told at the step, neither shows (A3).
 *
 * @param startedAt when the request began, on the monotonic clock
 */
export function untilEvenStep(startedAt: number, now: number = performance.now()): number {
  const spent = Math.max(0, now - startedAt);
  return Math.max(1, Math.ceil(spent / STEP_MS)) * STEP_MS - spent;
}
