import { RestCaller, type Heard, type ToolAnswer } from '../support/callers.js';
import { until } from '../support/until.js';
import { ACCEPT, WebhookReceiver } from '../support/webhook-receiver.js';
import { CrashServers } from './crash-servers.js';
import type { CrashCase, Expected, HandOver, Situation } from './hand-overs.js';

/** One server that is going to be killed, and what becomes of its database. */
export interface Victim {
  readonly id: string;
  readonly of: CrashCase;
  /** The crossing at which it is killed; '' for a clean run, which is killed when all is done. */
  readonly stopAt: string;
  readonly expected: Expected;
  databaseUrl: string;
  situation?: Situation;
  /** What callers had heard when the process was killed. */
  before?: HeardBefore;
  /** The agent, where it is called: it lives in the test, so what it has heard outlives the kill. */
  agent?: WebhookReceiver;
  /** Why it did not come to its crossing. */
  trouble?: Error;
  /** What a clean run crossed. */
  crossed?: readonly string[];
}

/** Undefined where the connection died first. */
export interface HeardBefore {
  readonly responder: Heard | undefined;
  readonly agent: Heard | ToolAnswer | undefined;
}

/**
 * Kills each of the servers at its crossing: all of them at once, when each has come to its own and stands still. One
 * that is alone kills itself.
 */
export async function killAtCrossings(victims: readonly Victim[]): Promise<void> {
  await killWhileAnswering(victims);
  // Whatever it did until now, from the next start on it listens.
  for (const { agent } of victims) agent?.everyTime(ACCEPT);
  const recovering = victims.filter((victim) => victim.of.killedBefore !== undefined);
  if (recovering.length > 0) await killWhileRecovering(recovering);
}

async function killWhileAnswering(victims: readonly Victim[]): Promise<void> {
  const servers = new CrashServers(victims.length === 1 ? 'die' : undefined);
  const heard = await Promise.all(
    victims.map((victim) => withTrouble(victim, () => answerUntilStopped(servers, victim))),
  );
  await servers.kill();
  for (const each of heard) {
    if (each !== undefined) each.victim.before = { responder: await each.responder, agent: await each.agent };
  }
}

async function answerUntilStopped(servers: CrashServers, victim: Victim) {
  const { id, databaseUrl, of } = victim;
  servers.open(id, envOf(databaseUrl));
  const url = await servers.opened(id);
  const situation = await of.handOver.arrange(url);
  victim.situation = situation;
  if (of.handOver.whenCalled !== undefined) {
    victim.agent = await WebhookReceiver.start();
    victim.agent.secret = SECRET;
    victim.agent.everyTime(of.handOver.whenCalled);
    const resume = { mode: 'webhook', url: victim.agent.url(), secret: SECRET };
    await new RestCaller(url).make('PATCH', `/task-sessions/${situation.sessionId}`, { resume });
  }
  const stopAt = of.killedBefore ?? victim.stopAt;
  await servers.arm(id, stopAt, of.handOver.meanwhile?.at);
  const responder = act(url, situation, of.handOver);
  void interrupt(servers, victim, url);
  if (stopAt === '') {
    await Promise.all([responder, situation.waiting]);
    await crossedAll(servers, victim);
  } else {
    await servers.stopped(id);
  }
  return { victim, responder, agent: situation.waiting };
}

/** While the answer waits at a crossing, something else happens; only then it goes on. */
async function interrupt(servers: CrashServers, { id, of, situation }: Victim, url: string): Promise<void> {
  const { meanwhile } = of.handOver;
  if (meanwhile === undefined || situation === undefined) return;
  await servers.passed(id, meanwhile.at);
  try {
    await meanwhile.happens(url, situation);
    await servers.passed(id, meanwhile.until);
    servers.letGo(id);
  } catch {
    // The kill came first.
  }
}

/** Their databases are what an earlier kill has left; they are killed again before they listen. */
async function killWhileRecovering(victims: readonly Victim[]): Promise<void> {
  const servers = new CrashServers(victims.length === 1 ? 'die' : undefined);
  await Promise.all(
    victims.map((victim) =>
      withTrouble(victim, async () => {
        servers.open(victim.id, envOf(victim.databaseUrl), victim.stopAt);
        if (victim.stopAt !== '') await servers.stopped(victim.id);
        else if ((await servers.opened(victim.id)) !== '') await crossedAll(servers, victim);
      }),
    ),
  );
  await servers.kill();
}

/** One that does not come to its crossing fails its own test and no other. */
async function withTrouble<T>(victim: Victim, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    victim.trouble = error as Error;
    return undefined;
  }
}

/** Waits until what is listed has been crossed, and long enough for anything more to show. */
async function crossedAll(servers: CrashServers, victim: Victim): Promise<void> {
  const listed = Object.keys(victim.of.crossings);
  victim.crossed = servers.crossed(victim.id);
  await until(() => servers.crossed(victim.id).length >= listed.length);
  const rest = new RestCaller(await servers.opened(victim.id));
  await rest.make('GET', `/clarification/${victim.situation?.pendingId}`);
  victim.crossed = [...servers.crossed(victim.id)];
}

/** @returns what the responder heard, if there is one and its connection lived */
async function act(url: string, situation: Situation, { deed, outcome }: HandOver): Promise<Heard | undefined> {
  try {
    if (deed === undefined)
      return await new RestCaller(url).post(`/clarification/${situation.pendingId}/respond`, outcome);
    await deed(url, situation);
  } catch {
    // The kill came first.
  }
  return undefined;
}

/** Of every agent that is called. */
export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

export function envOf(databaseUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    POOL_SIZE: '2',
    REATTACH_MS: '0',
    OPEN_METRICS_AND_DOCS: 'false',
    WEBHOOK_ALLOW_PRIVATE: 'true',
  };
}
