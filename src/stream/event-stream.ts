import type { ServerResponse } from 'node:http';
import type { Caller } from '../identity/caller.js';
import { heartbeatText, openingText, resyncText } from './event-text.js';
import type { EventFeed } from './event-feed.js';

/**
 * One client's connection. It has no events of its own: it reads the feed as fast as the client takes what is sent, so
 * that a client that takes nothing costs a socket buffer, and is dropped once the events it would need are gone.
 */
export class EventStream {
  /** Everything up to it has been sent, or was not for the caller. */
  position: number;
  /** Where the client knows to be. */
  private told: number;
  /** Heartbeats since the client last took something; 0 while nothing waits for it. */
  private stalledFor = 0;

  /**
   * @param lastEventId what the client had last; empty for one that wants what happens from now on
   * @param onTooSlow called when the client is dropped because it does not take what is sent
   */
  constructor(
    private readonly response: ServerResponse,
    private readonly caller: Caller,
    private readonly feed: EventFeed,
    lastEventId: string,
    private readonly onTooSlow: () => void,
  ) {
    const known = lastEventId === '' ? feed.position : feed.positionOf(lastEventId);
    this.position = known ?? feed.position;
    this.told = this.position;
    const id = feed.idAt(this.position);
    response.write(openingText(id) + (known === undefined ? resyncText(id) : ''));
    response.on('drain', () => {
      this.stalledFor = 0;
      this.send();
    });
  }

  /** Sends what there is for the caller, as far as it takes it. */
  send(): void {
    if (!this.feed.reachesBackTo(this.position)) this.skipAhead();
    while (this.isWritable) {
      const { bytes, position } = this.feed.after(this.position, this.caller);
      if (position === this.position) break;
      this.position = position;
      if (bytes.length === 0) continue;
      this.told = position;
      this.response.write(bytes);
    }
  }

  /** @param patience for how many beats the client may take nothing */
  beat(patience: number): void {
    if (this.isWritable) {
      const isBehind = this.told < this.position;
      this.told = this.position;
      this.response.write(heartbeatText(isBehind ? this.feed.idAt(this.position) : undefined));
    } else {
      this.stalledFor += 1;
      if (this.stalledFor >= patience) this.giveUp();
    }
  }

  /** After what has been sent, if the client takes it. */
  end(): void {
    if (this.isWritable) this.response.end();
    else this.response.destroy();
  }

  /** What it would need is gone: because the client is too slow, or because looking at the events was. */
  private skipAhead(): void {
    if (!this.isWritable) return this.giveUp();
    this.position = this.feed.position;
    this.told = this.position;
    this.response.write(resyncText(this.feed.idAt(this.position)));
  }

  private giveUp(): void {
    if (this.response.destroyed) return;
    this.onTooSlow();
    this.response.destroy();
  }

  private get isWritable(): boolean {
    return !this.response.destroyed && !this.response.writableEnded && !this.response.writableNeedDrain;
  }
}
