import type { Deadline } from '../common/deadline.js';
import { UNWATCHED, type WaitBegins } from './database-waits.js';

interface Waiting {
  readonly start: () => void;
}

/**
 * Runs one task at a time, first come first served. A task whose deadline passes while it waits is refused at that
 * moment and never starts; one that has started is not touched here.
 */
export class DeadlineQueue {
  private readonly waiting = new Set<Waiting>();
  private running = false;
  private closed = false;
  private idle: (() => void)[] = [];

  constructor(private readonly waitBegins: WaitBegins = UNWATCHED) {}

  /** @throws TemporarilyUnavailableError when its turn did not come in time, or the queue is closed */
  run<T>(deadline: Deadline, task: () => Promise<T>): Promise<T> {
    if (this.closed) return Promise.reject(deadline.expiry());
    const waitEnds = this.waitBegins();
    return new Promise<T>((resolve, reject) => {
      const entry: Waiting = {
        start: () => {
          clearTimeout(timer);
          waitEnds();
          this.running = true;
          // The caller may have gone while it waited.
          void this.perform(deadline, task)
            .then(resolve, reject)
            .finally(() => this.next());
        },
      };
      const timer = setTimeout(() => {
        this.waiting.delete(entry);
        waitEnds();
        reject(deadline.expiry());
      }, deadline.remainingMs);
      if (this.running) this.waiting.add(entry);
      else entry.start();
    });
  }

  /** Accepts nothing more and resolves when all that was accepted has ended. */
  async close(): Promise<void> {
    this.closed = true;
    if (this.running) await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  private async perform<T>(deadline: Deadline, task: () => Promise<T>): Promise<T> {
    deadline.throwIfOver();
    return task();
  }

  private next(): void {
    this.running = false;
    for (const entry of this.waiting) {
      this.waiting.delete(entry);
      entry.start();
      return;
    }
    for (const resolve of this.idle.splice(0)) resolve();
  }
}
