import type { EndSignal } from './end-signal.js';

export type WakeupResult = 'woken' | 'timeout' | 'aborted';

/** Lets one waiter sleep until it is woken; a wake-up that comes while it is awake is not lost. */
export class Wakeup {
  private isPending = false;
  private rouse: (() => void) | undefined;

  wake(): void {
    this.isPending = true;
    this.rouse?.();
  }

  /** Woken wins over aborted, and aborted over a time-out that came with it. */
  async sleep(milliseconds: number, signal?: EndSignal): Promise<WakeupResult> {
    if (!this.isPending && signal?.aborted !== true) await this.untilRoused(milliseconds, signal);
    const wasWoken = this.isPending;
    this.isPending = false;
    if (wasWoken) return 'woken';
    return signal?.aborted === true ? 'aborted' : 'timeout';
  }

  private untilRoused(milliseconds: number, signal: EndSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const rouse = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', rouse);
        this.rouse = undefined;
        resolve();
      };
      const timer = setTimeout(rouse, milliseconds);
      signal?.addEventListener('abort', rouse);
      this.rouse = rouse;
    });
  }
}
