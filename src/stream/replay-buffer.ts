import type { Caller } from '../identity/caller.js';
import { hears, type Envelope, type StreamedEvent } from './envelope.js';
import { eventText, resyncText } from './event-text.js';

interface Entry {
  readonly position: number;
  readonly event: StreamedEvent;
  told?: Told;
}

/** What is sent of an event: written once, however many clients hear it. */
interface Told {
  readonly envelope: Envelope;
  readonly event: Buffer;
  readonly resync: Buffer;
}

/** What one read gives: the bytes for this caller, and the position that it comes to. */
export interface Passage {
  readonly bytes: Buffer;
  readonly position: number;
}

/** An event of which nothing is known yet but that it happened. */
export type Untold = Pick<Entry, 'position' | 'event'>;

/** So much is read at a time: more would only lie in the buffers of slow sockets. */
const PASSAGE_BYTES = 64 * 1024;

/**
 * The newest events, numbered from 1 in the order in which they were published. Streams are read from here, each at its
 * own pace, and a client that connects again goes on where it was while that is still here. An event can be read once
 * somebody has looked at what it needs to be told; until then it holds back those after it.
 */
export class ReplayBuffer {
  private readonly entries: (Entry | undefined)[];
  private newest = 0;
  /** What was told last, for each caller that has read it: of a thousand streams most are where the others are. */
  private readonly latest = new Map<string, Passage>();
  private beforeLatest = 0;

  constructor(private readonly capacity: number) {
    this.entries = new Array<Entry | undefined>(capacity);
  }

  /** The number of the newest event; 0 when there is none. */
  get position(): number {
    return this.newest;
  }

  /** Whether everything after the position is still here. */
  reachesBackTo(position: number): boolean {
    return position <= this.newest && position >= this.newest - this.capacity;
  }

  add(event: StreamedEvent): void {
    this.newest += 1;
    this.entries[this.newest % this.capacity] = { position: this.newest, event };
  }

  /** The oldest so many events after the position that nobody has looked at. */
  untoldAfter(position: number, limit: number): readonly Untold[] {
    const untold: Untold[] = [];
    for (let at = this.firstAfter(position); at <= this.newest && untold.length < limit; at += 1) {
      const entry = this.entryAt(at);
      if (entry.told === undefined) untold.push(entry);
    }
    return untold;
  }

  /** @param epoch of the ids */
  tell(epoch: number, found: readonly (readonly [position: number, envelope: Envelope])[]): void {
    this.latest.clear();
    this.beforeLatest = (found[0]?.[0] ?? 1) - 1;
    for (const [position, envelope] of found) {
      const entry = this.entryAt(position);
      // Newer ones may have taken the place of what was looked at.
      if (entry.position !== position) continue;
      const id = eventId(epoch, position);
      entry.told = {
        envelope,
        event: Buffer.from(eventText(id, envelope)),
        resync: Buffer.from(resyncText(id)),
      };
    }
  }

  /** What the caller may hear of what comes after a position to which this reaches back. */
  after(position: number, caller: Caller): Passage {
    if (position !== this.beforeLatest) return this.read(position, caller);
    const reader = readerOf(caller);
    const passage = this.latest.get(reader) ?? this.read(position, caller);
    this.latest.set(reader, passage);
    return passage;
  }

  private read(from: number, caller: Caller): Passage {
    const frames: Buffer[] = [];
    let bytes = 0;
    let position = from;
    let endsInResync = false;
    while (position < this.newest && bytes < PASSAGE_BYTES) {
      const { told } = this.entryAt(position + 1);
      if (told === undefined) break;
      position += 1;
      const heard = hears(caller, told.envelope);
      if (heard === 'nothing') continue;
      // One is as good as many; the last has the id to go on from.
      if (heard === 'resync' && endsInResync) frames.pop();
      endsInResync = heard === 'resync';
      frames.push(told[heard]);
      bytes += told[heard].length;
    }
    return { bytes: Buffer.concat(frames), position };
  }

  private firstAfter(position: number): number {
    return Math.max(position, this.newest - this.capacity) + 1;
  }

  private entryAt(position: number): Entry {
    const entry = this.entries[position % this.capacity];
    if (entry === undefined) throw new Error(`there is no event ${position}`);
    return entry;
  }
}

export function eventId(epoch: number, position: number): string {
  return `${epoch}-${position}`;
}

function readerOf(caller: Caller): string {
  switch (caller.kind) {
    case 'unscoped':
      return 'unscoped';
    case 'user':
      return `user ${caller.userId}`;
    case 'agent':
      return `agent ${caller.sessionId}`;
  }
}
