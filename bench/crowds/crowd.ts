import type { Memory } from './probed-server.js';
import type { World } from './world.js';

/** How many of everything. */
export interface Sizes {
  readonly rounds: number;
  /** Among which questions are spread where not each needs one of its own. */
  readonly sessions: number;
  readonly waiters: number;
  readonly streams: number;
  readonly streamSeconds: number;
  readonly asksPerSecond: number;
  readonly askSeconds: number;
  readonly overloadSeconds: number;
  /** Callers that send the next request as soon as they have the reply to the last. */
  readonly overloadCallers: number;
  readonly overloadWaits: number;
  readonly overloadStreams: number;
  readonly limitedRequests: number;
}

/** What a crowd can use; it runs in a process of its own. */
export interface CrowdContext {
  readonly world: World;
  readonly sizes: Sizes;
  /** The server's memory now, after a garbage collection. */
  memory(this: void): Promise<Memory>;
}

export interface CrowdOutcome {
  /** What was done, in numbers. */
  readonly did: string;
  /** What must not be, whatever the machine: an error, a lost answer, two winners, somebody who waits for ever. */
  readonly faults: readonly string[];
  /** What was measured beside what every crowd is measured by. */
  readonly figures: readonly Figure[];
}

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: 'ms' | 'KiB' | 'x' | '';
  /** The value is meant to be at most this. */
  readonly target?: number;
}

export type Crowd = (context: CrowdContext) => Promise<CrowdOutcome>;
