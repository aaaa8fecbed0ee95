import { setTimeout as pause } from 'node:timers/promises';
import type { CrowdContext, CrowdOutcome } from './crowd.js';
import { digestOf, EventLoad, type HeardEvent } from './event-load.js';
import { Faults } from './faults.js';
import { median, quantile } from './figures.js';
import { inParallel, type Asked, type Session, type User } from './world.js';

const MOST_SESSIONS = 50;
const CYCLES_PER_SECOND = 20;
const OPENING_AT_ONCE = 64;
const QUIET_MS = 30_000;

/** Who listens, and what of everything it must hear. */
interface Listener {
  readonly stream: EventLoad;
  readonly hears: (event: HeardEvent) => boolean;
}

/** A thousand streams while questions are asked and answered: each hears exactly what it may, in order. */
export async function manyStreams({ world, sizes, memory }: CrowdContext): Promise<CrowdOutcome> {
  const faults = new Faults();
  const sessions = await world.sessionsOf(Math.min(sizes.sessions, MOST_SESSIONS));
  const before = await memory();
  const all: HeardEvent[] = [];
  const reference = await EventLoad.open(world.url, undefined, (event) => all.push(event));
  const listeners: Listener[] = [];
  await inParallel(sizes.streams - 1, OPENING_AT_ONCE, async (index) => {
    const listener = await opened(index, world.url, world.users, sessions);
    if (listener.stream.status !== 200) faults.add(`a stream gave ${listener.stream.status}`);
    else listeners.push(listener);
  });
  const during = await memory();

  const took: number[] = [];
  const cycles = sizes.streamSeconds * CYCLES_PER_SECOND;
  await atRate(cycles, CYCLES_PER_SECOND, async (index) => {
    const session = sessions[index % sessions.length] as Session;
    const asked = await world.ask(session);
    if (!faults.expect(asked, 200, 'asking')) return;
    const bundle: Asked = { ...session, pendingId: String(asked.body['pending_id']) };
    const reply = await world.respond(bundle, index % 2 === 0 ? 1 : 'reject');
    took.push(asked.ms, reply.ms);
    faults.expect(reply, 200, 'answering');
  });
  await untilSilent(reference, listeners);

  for (const { stream, hears } of listeners) {
    const ids = all.filter(hears).map(({ id }) => id);
    if (stream.closed) faults.add('a stream was closed');
    else if (stream.resyncs > 0) faults.add('a stream was told to look again');
    else if (stream.heard !== ids.length || stream.digest() !== digestOf(ids)) {
      faults.add(`a stream heard other events than it may (${stream.heard} of ${ids.length})`);
    }
    stream.close();
  }
  reference.close();
  await world.checkIsQuiet(faults);
  return {
    did: `${listeners.length + 1} streams hear ${all.length} events of ${cycles} questions and answers`,
    faults: faults.list(),
    figures: [
      {
        name: 'heap per stream',
        value: (during.heapBytes - before.heapBytes) / sizes.streams / 1024,
        unit: 'KiB',
      },
      { name: 'request meanwhile, median', value: median(took), unit: 'ms' },
      { name: 'request meanwhile, p99', value: quantile(took, 0.99), unit: 'ms' },
    ],
  };
}

/** Half of them hear everything, four in ten what is their user's, the others what is their agent's. */
async function opened(
  index: number,
  url: string,
  users: readonly User[],
  sessions: readonly Session[],
): Promise<Listener> {
  if (index % 10 < 5) return { stream: await EventLoad.open(url), hears: () => true };
  if (index % 10 < 9) {
    const { token, workspaceId } = users[index % users.length] as User;
    return { stream: await EventLoad.open(url, token), hears: (event) => event.workspaceId === workspaceId };
  }
  const { agentToken, sessionId } = sessions[index % sessions.length] as Session;
  return { stream: await EventLoad.open(url, agentToken), hears: (event) => event.sessionId === sessionId };
}

/** Begins so many a second, whatever becomes of those before. */
export async function atRate(count: number, perSecond: number, act: (index: number) => Promise<void>): Promise<void> {
  const startedAt = performance.now();
  const under: Promise<void>[] = [];
  for (let index = 0; index < count; index += 1) {
    const early = startedAt + (index * 1000) / perSecond - performance.now();
    if (early > 1) await pause(early);
    under.push(act(index));
  }
  await Promise.all(under);
}

/** Until nobody has heard anything for a second; bounded. */
async function untilSilent(reference: EventLoad, listeners: readonly Listener[]): Promise<void> {
  const heard = (): number => listeners.reduce((sum, { stream }) => sum + stream.heard, reference.heard);
  const giveUpAt = performance.now() + QUIET_MS;
  for (let last = -1; last !== heard() && performance.now() < giveUpAt;) {
    last = heard();
    await pause(1_000);
  }
}
