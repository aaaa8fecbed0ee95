import { manyOnMany, manyOnOne } from './answer-crowds.js';
import { manyAsks } from './asking-crowd.js';
import type { Crowd } from './crowd.js';
import { beyondLimit, overload } from './overload-crowds.js';
import { manyStreams } from './stream-crowd.js';
import { manyWaiters, manyWaitersOnOne } from './waiting-crowds.js';

/** By the name that `--only` takes, in the order in which they come. */
export const CROWDS = {
  'one-bundle': manyOnOne,
  'many-bundles': manyOnMany,
  waiters: manyWaiters,
  'waiters-on-one': manyWaitersOnOne,
  streams: manyStreams,
  asks: manyAsks,
  overload,
  'rate-limit': beyondLimit,
} as const satisfies Record<string, Crowd>;

export type CrowdName = keyof typeof CROWDS;
