const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 3_600_000;
const GIVE_UP_AFTER_MS = 86_400_000;

/** How long to wait after so many attempts (at least 1): 5 s, doubled each time, at most an hour. */
export function pauseAfter(attempts: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), LONGEST_PAUSE_MS);
}

/** Whether a call that was first made `since` is not worth another attempt: after a day. */
export function isHopeless(since: string, now: string): boolean {
  return Date.parse(now) - Date.parse(since) >= GIVE_UP_AFTER_MS;
}
