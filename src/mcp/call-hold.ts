/** Tells the client that its call is alive. `progress` rises with every report. */
export type ProgressReporter = (progress: number, message: string) => void;

export interface HoldLimits {
  /** How long a call without a progress token is held: below the 60 s after which most clients give up. */
  readonly askHoldMs: number;
  /** The cap of any wait. */
  readonly waitTimeoutMs: number;
  /** Clients told to reset their time-out on progress hear from us this often; at most 15 s. */
  readonly progressEveryMs: number;
}

/** The wait ended without a response; the question is still open. */
export interface StillPending {
  readonly kind: 'pending';
}

/** Abort reason of a call that the service ends because it stops: the client is told `pending` and comes back. */
export class ShuttingDown extends Error {
  constructor() {
    super('the service is shutting down');
    this.name = 'ShuttingDown';
  }
}

/**
 * Holds one call open. With a progress token up to the wait cap, reporting at once and then regularly; without one no
 * longer than a client without progress is known to wait. `timeoutSeconds` only shortens that.
 */
export class CallHold {
  constructor(
    private readonly limits: HoldLimits,
    private readonly signal: AbortSignal,
    private readonly progress: ProgressReporter | undefined,
  ) {}

  /**
   * What the wait gave, or pending when the time is up or the service stops. A response that the wait has given is
   * returned whatever has happened to the call: whoever gave it counts on that.
   *
   * @param message what a person watching the call reads
   * @throws the signal's reason when the call was ended otherwise; what `wait` throws
   */
  async until<T extends { readonly kind: string }>(
    request: { readonly timeoutSeconds?: number | undefined; readonly message: string },
    wait: (options: { readonly timeoutMs: number; readonly signal: AbortSignal }) => Promise<T | StillPending>,
  ): Promise<T | StillPending> {
    const stopReporting = this.report(request.message);
    try {
      const result = await wait({ timeoutMs: this.timeoutMs(request.timeoutSeconds), signal: this.signal });
      if (result.kind !== 'pending') return result;
    } catch (error) {
      // What a wait says of an aborted signal is its own business; the reason for the abort is known here.
      if (!this.signal.aborted) throw error;
    } finally {
      stopReporting();
    }
    if (this.signal.aborted && !(this.signal.reason instanceof ShuttingDown)) throw this.signal.reason;
    return { kind: 'pending' };
  }

  private timeoutMs(timeoutSeconds: number | undefined): number {
    const { askHoldMs, waitTimeoutMs } = this.limits;
    const cap = this.progress === undefined ? Math.min(askHoldMs, waitTimeoutMs) : waitTimeoutMs;
    return timeoutSeconds === undefined ? cap : Math.min(timeoutSeconds * 1000, cap);
  }

  private report(message: string): () => void {
    const { progress } = this;
    if (progress === undefined) return () => undefined;
    let reports = 0;
    const beat = (): void => {
      reports += 1;
      progress(reports, message);
    };
    beat();
    const timer = setInterval(beat, this.limits.progressEveryMs);
    return () => clearInterval(timer);
  }
}
