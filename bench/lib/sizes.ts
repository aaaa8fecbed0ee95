/** How large a run is. `smoke` shows only that everything runs; its ratios mean nothing. */
export type Profile = 'full' | 'quick' | 'smoke';

/** The rows of one seeded database. */
export interface TableSize {
  /** All of them: the questions below, and ordinary messages for the rest. */
  readonly messages: number;
  /** Bundles that can be answered, of one question each, each in a session of its own. */
  readonly active: number;
  /** Bundles of one question that are pending still, in turns that are no longer current. */
  readonly superseded: number;
  /** Bundles of one question that were answered. */
  readonly resolved: number;
  /** Sessions of three turns, those of the active bundles included. */
  readonly sessions: number;
}

export interface Sizes {
  readonly large: TableSize;
  readonly small: TableSize;
  /** Of an answer or a listing, for each of the two that are compared. */
  readonly samples: number;
  /** Of a request that changes nothing. */
  readonly readSamples: number;
  /** Thrown away before the first one counts, of each. */
  readonly warmUp: number;
  readonly callers: number;
  /** How often the callers start together. */
  readonly rounds: number;
  readonly waiters: number;
}

const SMALL: TableSize = { messages: 1_000, active: 200, superseded: 0, resolved: 100, sessions: 250 };

export const SIZES: Readonly<Record<Profile, Sizes>> = {
  full: {
    large: { messages: 1_000_000, active: 5_000, superseded: 50_000, resolved: 95_000, sessions: 20_000 },
    small: SMALL,
    samples: 150,
    readSamples: 1_000,
    warmUp: 30,
    callers: 64,
    rounds: 10,
    waiters: 5_000,
  },
  quick: {
    large: { messages: 50_000, active: 1_000, superseded: 2_500, resolved: 4_500, sessions: 2_000 },
    small: SMALL,
    samples: 30,
    readSamples: 120,
    warmUp: 10,
    callers: 64,
    rounds: 2,
    waiters: 500,
  },
  smoke: {
    large: { messages: 2_000, active: 150, superseded: 100, resolved: 100, sessions: 200 },
    small: { messages: 500, active: 100, superseded: 0, resolved: 50, sessions: 120 },
    samples: 4,
    readSamples: 8,
    warmUp: 2,
    callers: 8,
    rounds: 1,
    waiters: 20,
  },
};

export function messagesText({ messages }: TableSize): string {
  return `${messages.toLocaleString('en')} messages`;
}
