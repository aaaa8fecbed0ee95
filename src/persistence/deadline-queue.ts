import type { Deadline } from '../common/deadline.js';
import type { WaitBegins } from './database-waits.js';
import { WaitingLine, type Waiting } from './waiting-line.js';

interface Task<Slot> extends Waiting {
  start(slot: Slot): Promise<void>;
}

/**
 * Runs tasks, each with a slot to itself, first come first served. A task whose deadline passes while it waits is refused
 * at that moment and never starts; one that has started is not touched here.
 */
export class DeadlineQueue<Slot> {
  private readonly waiting: WaitingLine<Task<Slot>>;
  private readonly free: Slot[];
  private closed = false;
  private idle: (() => void)[] = [];

  constructor(
    private readonly slots: readonly Slot[],
    waitBegins?: WaitBegins,
  ) {
    this.waiting = new WaitingLine(waitBegins);
    this.free = [...slots];
  }

  /** @throws TemporarilyUnavailableError when its turn did not come in time, or the queue is closed */
  run<T>(deadline: Deadline, perform: (slot: Slot) => Promise<T>): Promise<T> {
    if (this.closed) return Promise.reject(deadline.expiry());
    return new Promise<T>((resolve, reject) => {
      this.waiting.join({
        deadline,
        refuse: reject,
        start: (slot) => this.perform(deadline, () => perform(slot)).then(resolve, reject),
      });
      this.startNext();
    });
  }

  /** Accepts nothing more and resolves when all that was accepted has ended. */
  async close(): Promise<void> {
    this.closed = true;
    if (this.free.length < this.slots.length) await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  private async perform<T>(deadline: Deadline, task: () => Promise<T>): Promise<T> {
    // The caller may have gone while it waited.
    deadline.throwIfOver();
    return task();
  }

  private startNext(): void {
    const slot = this.free.pop();
    if (slot === undefined) return;
    const task = this.waiting.take();
    if (task !== undefined) {
      void task.start(slot).then(() => {
        this.free.push(slot);
        this.startNext();
      });
      return;
    }
    this.free.push(slot);
    if (this.free.length === this.slots.length) for (const resolve of this.idle.splice(0)) resolve();
  }
}
