import type { ClientRequest } from 'node:http';
import type { CrowdContext, CrowdOutcome } from './crowd.js';
import { Faults } from './faults.js';
import { median } from './figures.js';
import type { Reply } from './rest-load.js';
import { inParallel, WAITING_WHILE_COUNTED, type Asked, type World } from './world.js';

const WAIT_SECONDS = 600;
const KEPT_OPEN = 'clarification_active_waiters';
/** Answers that are measured, alone and beside everybody who waits: at most so many, and at most a fifth of them. */
const MOST_SAMPLES = 60;
const ANSWERING_AT_ONCE = 32;
const BEGINNING_AT_ONCE = 250;
const MAX_BYTES_PER_WAITER_KIB = 20;
const MAX_SLOWDOWN = 1.5;

/** Every agent waits for a bundle of its own; all are answered, a part of them is cut off instead. */
export async function manyWaiters({ world, sizes, memory }: CrowdContext): Promise<CrowdOutcome> {
  const faults = new Faults();
  const sessions = await world.sessionsOf(sizes.waiters);
  const samples = Math.min(MOST_SAMPLES, Math.floor(sizes.waiters / 5));
  const alone = await answersWithTheirWaiters(world, await world.asked(sessions.slice(0, samples)), 1, faults);
  const asked = await world.asked(sessions);
  const before = await memory();

  const requests: ClientRequest[] = [];
  const waits = await begunWaits(world, asked, faults, requests);
  const during = await memory();

  // The agents of a fifth of them go away, all at once.
  const leaving = Math.floor(asked.length / 5);
  const crowded = await answered(world, asked.slice(leaving, leaving + samples), 1, faults);
  for (const request of requests.slice(0, leaving)) request.destroy();
  const beside = await answered(world, asked.slice(leaving + samples, leaving + 2 * samples), 1, faults);
  await answered(world, asked.slice(leaving + 2 * samples), ANSWERING_AT_ONCE, faults);
  for (const [index, wait] of waits.entries()) {
    const reply = await wait;
    if (index < leaving) continue;
    if (faults.expect(reply, 200, 'a wait') && reply.body['pending_id'] !== asked[index]?.pendingId) {
      faults.add('an agent got the answer to another question');
    }
  }
  if (!(await world.until(KEPT_OPEN, '<=', 0))) faults.add('somebody is still waiting');
  await answered(world, asked.slice(0, leaving), ANSWERING_AT_ONCE, faults);
  await world.checkIsQuiet(faults);
  return {
    did: `${asked.length} agents wait for a bundle each, ${leaving} leave, the others are answered`,
    faults: faults.list(),
    figures: [
      {
        name: 'heap per waiter',
        value: (during.heapBytes - before.heapBytes) / asked.length / 1024,
        unit: 'KiB',
        target: MAX_BYTES_PER_WAITER_KIB,
      },
      { name: 'answer alone, median', value: median(alone), unit: 'ms' },
      { name: 'answer among them, median', value: median(crowded), unit: 'ms' },
      { name: 'answer among them / alone', value: median(crowded) / median(alone), unit: 'x', target: MAX_SLOWDOWN },
      { name: 'answer while others leave, median', value: median(beside), unit: 'ms' },
    ],
  };
}

/** Everybody waits for the same bundle: one answer reaches them all. */
export async function manyWaitersOnOne({ world, sizes, memory }: CrowdContext): Promise<CrowdOutcome> {
  const faults = new Faults();
  const count = sizes.waiters;
  const [asked] = await world.asked(await world.sessionsOf(1));
  if (asked === undefined) throw new Error('there is no session');
  const before = await memory();
  const waits = await begunWaits(world, new Array<Asked>(count).fill(asked), faults);
  const during = await memory();
  const startedAt = performance.now();
  const answer = await world.respond(asked, 1);
  faults.expect(answer, 200, 'answering');
  for (const reply of await Promise.all(waits)) {
    if (faults.expect(reply, 200, 'a wait') && reply.body['pending_id'] !== asked.pendingId) {
      faults.add('an agent got the answer to another question');
    }
  }
  const tookAll = performance.now() - startedAt;
  await world.checkIsQuiet(faults);
  return {
    did: `${count} wait for 1 bundle, 1 answer`,
    faults: faults.list(),
    figures: [
      {
        name: 'heap per waiter',
        value: (during.heapBytes - before.heapBytes) / count / 1024,
        unit: 'KiB',
        target: MAX_BYTES_PER_WAITER_KIB,
      },
      { name: 'answer', value: answer.ms, unit: 'ms' },
      { name: 'all of them told after', value: tookAll, unit: 'ms' },
    ],
  };
}

/**
 * One wait for each, some hundreds at a time: how many may arrive at once is another crowd's question.
 * @param requests is filled with them
 */
async function begunWaits(
  world: World,
  asked: readonly Asked[],
  faults: Faults,
  requests: ClientRequest[] = [],
): Promise<Promise<Reply>[]> {
  const waits: Promise<Reply>[] = [];
  while (waits.length < asked.length) {
    for (const one of asked.slice(waits.length, waits.length + BEGINNING_AT_ONCE)) {
      waits.push(world.wait(one, WAIT_SECONDS, { onRequest: (request) => requests.push(request) }));
    }
    // They count from before their first look at the rows, which is what takes the time.
    const haveCome = await world.until(KEPT_OPEN, '>=', waits.length);
    if (haveCome && (await world.until('database_waiting', '<=', WAITING_WHILE_COUNTED))) continue;
    faults.add('not everybody who asked to wait does');
    break;
  }
  return waits;
}

async function answersWithTheirWaiters(
  world: World,
  asked: readonly Asked[],
  atOnce: number,
  faults: Faults,
): Promise<number[]> {
  const waits = await begunWaits(world, asked, faults);
  const took = await answered(world, asked, atOnce, faults);
  for (const reply of await Promise.all(waits)) faults.expect(reply, 200, 'a wait');
  return took;
}

async function answered(world: World, asked: readonly Asked[], atOnce: number, faults: Faults): Promise<number[]> {
  const took: number[] = [];
  await inParallel(asked.length, atOnce, async (index) => {
    const reply = await world.respond(asked[index] as Asked, 1);
    took.push(reply.ms);
    if (faults.expect(reply, 200, 'answering') && reply.body['claimed'] !== true) faults.add('an answer did not win');
  });
  return took;
}
