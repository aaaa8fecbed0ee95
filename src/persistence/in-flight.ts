import type { Deadline } from '../common/deadline.js';

/** What has been started and not ended, so that closing can wait for it. */
export class InFlight {
  private readonly pending = new Set<Promise<unknown>>();
  private closed = false;

  /** @throws TemporarilyUnavailableError once closed */
  async track<T>(deadline: Deadline, start: () => Promise<T>): Promise<T> {
    if (this.closed) throw deadline.expiry();
    const work = start();
    this.add(work);
    return work;
  }

  add(work: Promise<unknown>): void {
    const ended = () => {
      this.pending.delete(entry);
    };
    const entry: Promise<void> = work.then(ended, ended);
    this.pending.add(entry);
  }

  /** Accepts nothing more and resolves when nothing is left, what the rest itself adds included. */
  async close(): Promise<void> {
    this.closed = true;
    while (this.pending.size > 0) await Promise.all(this.pending);
  }
}
