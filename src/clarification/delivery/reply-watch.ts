import type { OnReply } from '../../common/on-reply.js';

interface Watched {
  /** Replies of which it is not known yet. */
  open: number;
  readonly onLost: () => void;
}

/**
 * Follows responses that agents have taken over until one of their replies has been written out. When every one of
 * them turns out to have been lost on the way, the agent has to be resumed after all.
 */
export class ReplyWatch {
  private readonly watched = new Map<string, Watched>();

  /** @param onLost called at most once, when the last of the replies, and of those that joined, has been lost */
  follow(pendingId: string, replies: readonly OnReply[], onLost: () => void): void {
    const entry: Watched = { open: replies.length, onLost };
    this.watched.set(pendingId, entry);
    for (const reply of replies) reply(this.settling(pendingId, entry));
  }

  /**
   * A further reply is going to carry the same response.
   * @returns to be told what has become of it, once
   */
  join(pendingId: string): (written: boolean) => void {
    const entry = this.watched.get(pendingId);
    if (entry === undefined) return () => undefined;
    entry.open += 1;
    return this.settling(pendingId, entry);
  }

  private settling(pendingId: string, entry: Watched): (written: boolean) => void {
    return (written) => {
      entry.open -= 1;
      if (this.watched.get(pendingId) !== entry || (!written && entry.open > 0)) return;
      this.watched.delete(pendingId);
      if (!written) entry.onLost();
    };
  }
}
