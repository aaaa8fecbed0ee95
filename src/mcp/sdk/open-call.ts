import { CallerGoneError } from '../../common/deadline.js';

/** One tool call between its arrival and its reply. */
export class OpenCall {
  // Made when first asked for: most calls end before anybody waits, and a signal is costly.
  private controller: AbortController | undefined;
  private endedBy: Error | undefined;
  private readonly listeners: ((written: boolean) => void)[] = [];
  private outcome: boolean | undefined;

  /** The client has taken the call back: nothing is sent for it any more. */
  cancelled = false;

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.endedBy !== undefined) this.controller.abort(this.endedBy);
    }
    return this.controller.signal;
  }

  /** Asks the handler to come to an end; the first reason counts. */
  end(reason: Error): void {
    if (this.endedBy !== undefined) return;
    this.endedBy = reason;
    this.controller?.abort(reason);
  }

  /** Nobody will read the result. */
  abandon(): void {
    this.settle(false);
    this.end(new CallerGoneError());
  }

  cancel(): void {
    this.cancelled = true;
    this.abandon();
  }

  /** `written`: the reply left the process whole. The first word counts. */
  settle(written: boolean): void {
    if (this.outcome !== undefined) return;
    this.outcome = written;
    for (const listener of this.listeners.splice(0)) listener(written);
  }

  readonly onReply = (listener: (written: boolean) => void): void => {
    if (this.outcome === undefined) this.listeners.push(listener);
    else listener(this.outcome);
  };
}
