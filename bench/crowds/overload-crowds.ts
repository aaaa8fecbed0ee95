import { setTimeout as pause } from 'node:timers/promises';
import type { CrowdContext, CrowdOutcome, Figure } from './crowd.js';
import { EventLoad } from './event-load.js';
import { Faults } from './faults.js';
import { RestLoad, type Reply } from './rest-load.js';
import { inParallel, type Asked, type Session, type World } from './world.js';

/** A caller that is refused comes back sooner than it was told to: that is the point of it. */
const IMPATIENCE_MS = 100;
const ONCE = { again: false } as const;
const SHORT_WAIT_SECONDS = 2;
const LIVE_EVERY_MS = 100;
/** A server that says nothing for so long is taken for dead by whoever watches over it. */
const LIVE_PATIENCE_MS = 10_000;
const REFUSED_CHECKED = 300;

/** What every reply to too much load must be: done, refused for its state, or refused for now with when to come back. */
const ALLOWED = new Set([200, 201, 204, 409, 429, 503, 504]);

/** What became of the answers to one bundle. */
interface Tally {
  readonly asked: Asked;
  winners: number;
  refused: number;
  others: number;
}

/**
 * Far more at once than there is room for: questions, answers, waits, streams and lists. Everything is answered, or
 * refused in a way that tells when to come back; what was refused has not been claimed; afterwards all is as before.
 */
export async function overload({ world, sizes }: CrowdContext): Promise<CrowdOutcome> {
  const faults = new Faults();
  const statuses = new Map<number, number>();
  const sessions = await world.sessionsOf(sizes.sessions);
  const tallies: Tally[] = (await world.asked(sessions)).map((asked) => tally(asked));
  const until = performance.now() + sizes.overloadSeconds * 1000;
  const isOver = (): boolean => performance.now() >= until;
  const seen = async (reply: Reply): Promise<Reply> => {
    count(statuses, reply, faults);
    if (reply.status === 0 || reply.status === 429 || reply.status === 503) await pause(IMPATIENCE_MS);
    return reply;
  };

  const live = watchLive(world.url, isOver);
  await Promise.all([
    ...times(sizes.overloadCallers, (index) => call(world, index, { sessions, tallies, isOver, seen })),
    ...times(sizes.overloadWaits, async (index) => {
      for (let n = index; !isOver(); n += 7)
        await seen(await world.wait(pick(tallies, n).asked, SHORT_WAIT_SECONDS, ONCE));
    }),
    ...times(sizes.overloadStreams, (index) => listen(world, pick(sessions, index), isOver, statuses, faults)),
  ]);
  const { lost, slowestMs } = await live;
  if (lost > 0) faults.add(`/health/live did not answer ${lost} times`);

  for (const { winners } of tallies) if (winners > 1) faults.add(`${winners} winners of one bundle`);
  await checkRefusedAreOpen(world, tallies, faults);
  await world.checkIsQuiet(faults);
  return {
    did:
      `${sizes.overloadCallers} callers without pause, ${sizes.overloadWaits} waits, ${sizes.overloadStreams} streams, ` +
      `${sizes.overloadSeconds} s: ${told(statuses)}`,
    faults: faults.list(),
    figures: [
      { name: '/health/live, slowest', value: slowestMs, unit: 'ms' },
      ...served(statuses, sizes.overloadSeconds),
    ],
  };
}

/** More than its share from one address, on a server that has a limit. */
export async function beyondLimit({ world, sizes }: CrowdContext): Promise<CrowdOutcome> {
  const faults = new Faults();
  const statuses = new Map<number, number>();
  const [asked] = await world.asked(await world.sessionsOf(1));
  if (asked === undefined) throw new Error('there is no session');
  // Its token is known to be good before the others come.
  faults.expect(await world.wait(asked, 0), 504, 'another caller before');
  let isOver = false;
  const live = watchLive(world.url, () => isOver);
  await inParallel(sizes.limitedRequests, 256, async () => count(statuses, await world.read(asked, ONCE), faults));
  isOver = true;
  const { lost, slowestMs } = await live;
  if (lost > 0) faults.add(`/health/live did not answer ${lost} times`);
  if ((statuses.get(429) ?? 0) === 0) faults.add('nobody was told that it is too much');
  if ((statuses.get(200) ?? 0) === 0) faults.add('nobody was served');
  // Its share of this minute is used up, but not that of its agent.
  const waited = await world.wait(asked, 0);
  faults.expect(waited, 504, 'another caller afterwards');
  return {
    did: `${sizes.limitedRequests} requests of one caller with a limit: ${told(statuses)}`,
    faults: faults.list(),
    figures: [{ name: '/health/live, slowest', value: slowestMs, unit: 'ms' }],
  };
}

interface Calling {
  readonly sessions: readonly Session[];
  readonly tallies: Tally[];
  readonly isOver: () => boolean;
  readonly seen: (reply: Reply) => Promise<Reply>;
}

async function call(world: World, index: number, { sessions, tallies, isOver, seen }: Calling): Promise<void> {
  for (let n = index; !isOver(); n += 13) {
    switch (n % 5) {
      case 0: {
        const session = pick(sessions, n);
        const { status, body } = await seen(await world.ask(session, ONCE));
        if (status === 200) tallies.push(tally({ ...session, pendingId: String(body['pending_id']) }));
        break;
      }
      case 1:
      case 2: {
        const answered = tallies[tallies.length - 1 - (n % Math.min(tallies.length, 50))] ?? pick(tallies, n);
        const { status, body } = await seen(await world.respond(answered.asked, 'reject', ONCE));
        if (status === 200 && body['claimed'] === true) answered.winners += 1;
        else if (status === 503 || status === 429) answered.refused += 1;
        else answered.others += 1;
        break;
      }
      case 3:
        await seen(await world.read(pick(tallies, n).asked, ONCE));
        break;
      default:
        await seen(await world.rest.get('/api/v1/clarification?limit=50'));
    }
  }
}

/** Opens a stream for a while, again and again. */
async function listen(
  world: World,
  session: Session,
  isOver: () => boolean,
  statuses: Map<number, number>,
  faults: Faults,
): Promise<void> {
  while (!isOver()) {
    const stream = await EventLoad.open(world.url, session.agentToken);
    count(statuses, { status: stream.status, headers: stream.headers, body: {}, ms: 0 }, faults);
    await pause(1_000);
    stream.close();
  }
}

/** Asks on a connection of its own, as a supervisor does. */
async function watchLive(url: string, isOver: () => boolean): Promise<{ lost: number; slowestMs: number }> {
  const rest = new RestLoad(url);
  let lost = 0;
  let slowestMs = 0;
  while (!isOver()) {
    const reply = await rest.get('/health/live', { patienceMs: LIVE_PATIENCE_MS });
    if (reply.status !== 200) lost += 1;
    slowestMs = Math.max(slowestMs, reply.ms);
    await pause(LIVE_EVERY_MS);
  }
  rest.close();
  return { lost, slowestMs };
}

/** Who was told 503 and nothing else may rely on it: nothing was claimed. */
async function checkRefusedAreOpen(world: World, tallies: readonly Tally[], faults: Faults): Promise<void> {
  const refused = tallies.filter(({ refused, winners, others }) => refused > 0 && winners + others === 0);
  await inParallel(Math.min(refused.length, REFUSED_CHECKED), 8, async (index) => {
    const reply = await world.read(pick(refused, index).asked);
    if (faults.expect(reply, 200, 'reading') && reply.body['status'] !== 'pending') {
      faults.add(`a bundle whose answers were all refused is ${String(reply.body['status'])}`);
    }
  });
}

function count(statuses: Map<number, number>, reply: Reply, faults: Faults): void {
  statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
  if (!ALLOWED.has(reply.status)) faults.add(`a reply was ${reply.status} ${JSON.stringify(reply.body)}`.slice(0, 200));
  const mustSayWhen = reply.status === 429 || reply.status === 503;
  if (mustSayWhen && !/^[1-9]\d*$/.test(reply.headers['retry-after'] ?? '')) {
    faults.add(`a ${reply.status} does not say when to come back`);
  }
}

function served(statuses: ReadonlyMap<number, number>, seconds: number): Figure[] {
  const good = (statuses.get(200) ?? 0) + (statuses.get(409) ?? 0);
  return [{ name: 'served a second', value: good / seconds, unit: '' }];
}

function told(statuses: ReadonlyMap<number, number>): string {
  return [...statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, times]) => `${times}× ${status === 0 ? 'no reply' : status}`)
    .join(', ');
}

function tally(asked: Asked): Tally {
  return { asked, winners: 0, refused: 0, others: 0 };
}

function times<T>(count: number, act: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => act(index));
}

function pick<T>(values: readonly T[], index: number): T {
  const value = values[index % values.length];
  if (value === undefined) throw new Error('there is nothing to choose from');
  return value;
}
