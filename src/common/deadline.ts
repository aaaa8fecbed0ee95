import { TemporarilyUnavailableError } from './domain-error.js';

/** The caller went away before its request changed anything; there is nobody left to tell. */
export class CallerGoneError extends Error {
  constructor() {
    super('the caller disconnected before its request took effect');
    this.name = 'CallerGoneError';
  }
}

/**
 * How long one piece of work may take, measured on the monotonic clock, and optionally the caller on whose
 * behalf it runs. Whoever is about to make something durable asks {@link throwIfOver} first.
 */
export class Deadline {
  private constructor(
    private readonly expiresAt: number,
    private readonly callerGone: { readonly aborted: boolean } | undefined,
    private readonly message: string,
    /** When the budget began, on the monotonic clock. */
    readonly startedAt: number,
  ) {}

  static after(
    milliseconds: number,
    options: { callerGone?: { readonly aborted: boolean }; message?: string } = {},
  ): Deadline {
    const now = performance.now();
    const message = options.message ?? 'the service is temporarily unavailable; send the same request again';
    return new Deadline(now + milliseconds, options.callerGone, message, now);
  }

  /** The same budget, failing with another sentence. */
  withMessage(message: string): Deadline {
    return new Deadline(this.expiresAt, this.callerGone, message, this.startedAt);
  }

  /** The same budget with so many milliseconds left, as if it had begun that much later. */
  withMilliseconds(milliseconds: number): Deadline {
    const expiresAt = performance.now() + milliseconds;
    return new Deadline(expiresAt, this.callerGone, this.message, expiresAt - (this.expiresAt - this.startedAt));
  }

  /** The same budget for work that runs to its end whatever becomes of the caller's connection. */
  withoutCaller(): Deadline {
    return new Deadline(this.expiresAt, undefined, this.message, this.startedAt);
  }

  /** Milliseconds left, a whole number, never below 0. */
  get remainingMs(): number {
    return Math.max(0, Math.ceil(this.expiresAt - performance.now()));
  }

  get isOver(): boolean {
    return this.remainingMs === 0;
  }

  /** What the caller of expired work is told (503 on REST). */
  expiry(cause?: unknown): TemporarilyUnavailableError {
    return new TemporarilyUnavailableError(this.message, cause === undefined ? undefined : { cause });
  }

  /** @throws TemporarilyUnavailableError when the time is up, CallerGoneError when nobody waits any more. */
  throwIfOver(): void {
    if (this.isOver) throw this.expiry();
    if (this.callerGone?.aborted === true) throw new CallerGoneError();
  }
}
