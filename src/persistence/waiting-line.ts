import type { Deadline } from '../common/deadline.js';
import { UNWATCHED, type WaitBegins } from './database-waits.js';

export interface Waiting {
  readonly deadline: Deadline;
  /** Its deadline has passed before its turn came. */
  refuse(error: Error): void;
}

/** First come, first served. Whoever's deadline passes while it waits is refused at that moment. */
export class WaitingLine<Entry extends Waiting> {
  private readonly leave = new Map<Entry, () => void>();

  constructor(private readonly waitBegins: WaitBegins = UNWATCHED) {}

  join(entry: Entry): void {
    const waitEnds = this.waitBegins();
    const timer = setTimeout(() => {
      leave();
      entry.refuse(entry.deadline.expiry());
    }, entry.deadline.remainingMs);
    const leave = () => {
      clearTimeout(timer);
      this.leave.delete(entry);
      waitEnds();
    };
    this.leave.set(entry, leave);
  }

  /** Whose turn it is; undefined when nobody waits. Its deadline may be over by now. */
  take(): Entry | undefined {
    for (const [entry, leave] of this.leave) {
      leave();
      return entry;
    }
    return undefined;
  }
}
