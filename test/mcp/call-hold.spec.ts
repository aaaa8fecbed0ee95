import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CallerGoneError } from '../../src/common/deadline.js';
import { UnauthorizedError } from '../../src/common/domain-error.js';
import { CallHold, ShuttingDown } from '../../src/mcp/call-hold.js';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const LIMITS = { askHoldMs: 50_000, waitTimeoutMs: 7_200_000, progressEveryMs: 10_000 };
const PENDING = { kind: 'pending' } as const;
const RESPONSE = { kind: 'response', text: 'yes' } as const;

/** How long a call with these settings would be held. */
async function heldFor(timeoutSeconds: number | undefined, hasProgress: boolean, limits = LIMITS): Promise<number> {
  const hold = new CallHold(limits, new AbortController().signal, hasProgress ? () => undefined : undefined);
  let held = NaN;
  await hold.until({ timeoutSeconds, message: '' }, async ({ timeoutMs }) => {
    held = timeoutMs;
    return PENDING;
  });
  return held;
}

describe('HOLD: how long a call is held', () => {
  it('without a progress token at most ASK_HOLD_MS, less when timeout_seconds says so', async () => {
    expect(await heldFor(undefined, false)).toBe(50_000);
    expect(await heldFor(3, false)).toBe(3_000);
    expect(await heldFor(0, false)).toBe(0);
    expect(await heldFor(3_600, false)).toBe(50_000);
  });

  it('with a progress token up to the wait cap; above the cap timeout_seconds is the cap', async () => {
    expect(await heldFor(undefined, true)).toBe(7_200_000);
    expect(await heldFor(3_600, true)).toBe(3_600_000);
    expect(await heldFor(0, true)).toBe(0);
    expect(await heldFor(Number.MAX_SAFE_INTEGER, true)).toBe(7_200_000);
  });

  it('never beyond the wait cap', async () => {
    expect(await heldFor(undefined, false, { ...LIMITS, waitTimeoutMs: 1_000 })).toBe(1_000);
  });
});

describe('HOLD: a held call with a progress token', () => {
  it('reports at once and then at least every 15 s, strictly rising, and never after its result', async () => {
    const reports: { at: number; progress: number; message: string }[] = [];
    const start = Date.now();
    const hold = new CallHold(LIMITS, new AbortController().signal, (progress, message) =>
      reports.push({ at: Date.now() - start, progress, message }),
    );
    let answer: (value: typeof RESPONSE) => void = () => undefined;
    const held = hold.until<typeof RESPONSE>(
      { message: 'waiting' },
      () => new Promise((resolve) => (answer = resolve)),
    );
    await jest.advanceTimersByTimeAsync(65_000);
    answer(RESPONSE);
    expect(await held).toBe(RESPONSE);
    await jest.advanceTimersByTimeAsync(600_000);
    expect(reports.map((report) => report.at)).toEqual([0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000]);
    expect(reports.map((report) => report.progress)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(new Set(reports.map((report) => report.message))).toEqual(new Set(['waiting']));
    expect(jest.getTimerCount()).toBe(0);
  });

  it('stops reporting when the wait fails', async () => {
    const hold = new CallHold(LIMITS, new AbortController().signal, () => undefined);
    await expect(hold.until({ message: '' }, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(jest.getTimerCount()).toBe(0);
  });
});

describe('HOLD: a held call that is ended', () => {
  async function ended(reason: Error, outcome: () => Promise<typeof PENDING | typeof RESPONSE>): Promise<unknown> {
    const controller = new AbortController();
    const hold = new CallHold(LIMITS, controller.signal, undefined);
    return hold.until({ message: '' }, () => {
      controller.abort(reason);
      return outcome();
    });
  }

  it('by the shutdown of the service is pending, whatever the wait says of it', async () => {
    expect(await ended(new ShuttingDown(), async () => PENDING)).toEqual(PENDING);
    expect(await ended(new ShuttingDown(), () => Promise.reject(new CallerGoneError()))).toEqual(PENDING);
  });

  it('by its token fails with the reason, whatever the wait says of it', async () => {
    const reason = new UnauthorizedError('revoked');
    await expect(ended(reason, async () => PENDING)).rejects.toBe(reason);
    await expect(ended(reason, () => Promise.reject(new CallerGoneError()))).rejects.toBe(reason);
  });

  it('still returns a response that the wait has given: whoever gave it counts on that', async () => {
    expect(await ended(new ShuttingDown(), async () => RESPONSE)).toBe(RESPONSE);
    expect(await ended(new UnauthorizedError('revoked'), async () => RESPONSE)).toBe(RESPONSE);
  });
});
