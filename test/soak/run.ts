import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Counts } from './counts.js';
import { faultsIn } from './invariants.js';
import { startPostgres } from './own-postgres.js';
import { Random } from './random.js';
import { SoakClient } from './soak-client.js';
import { SoakReceiver, WEBHOOK_FAULTS, type WebhookFault } from './soak-receiver.js';
import { SoakWorld } from './soak-world.js';
import { SoakedServer } from './soaked-server.js';

// npm run soak -- [--seconds N] [--seed S] [--database URL | --postgres]
//
// Everything that users, agents and misfortune can do, at random, against a real server; then what must be true. Goes on
// beyond N seconds, up to three times as long, until everything has happened often enough to mean something.
//   --no-minimum   does not, and does not mind

const ACTORS = 12;
const AT_LEAST = 50;
const KILLS_AT_LEAST = 5;
const AT_MOST_TIMES = 3;
const PAUSE_BETWEEN_KILLS_MS = 4_000;
/** Short, so that an agent that hangs does not take up the whole run. */
const DELIVERY_BUDGET_MS = 700;
const SETTLE_MS = 60_000;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    database: { type: 'string' },
    postgres: { type: 'boolean', default: false },
    'no-minimum': { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
if (!Number.isInteger(seconds) || seconds < 1 || !Number.isInteger(seed)) {
  process.stderr.write(
    'usage: npm run soak -- [--seconds N] [--seed S] [--database URL | --postgres]; N at least 1, S a whole number\n',
  );
  process.exit(2);
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const folder = mkdtempSync(join(tmpdir(), 'clarion-soak-'));
const postgres = values.postgres ? await startPostgres() : undefined;
const url = values.database ?? postgres?.url ?? `sqlite:${join(folder, 'soak.db')}`;
const random = new Random(seed);
const faultCounts = new Counts(['webhook fault', ...WEBHOOK_FAULTS.map((fault) => `  ${fault}`)]);
let isCalm = false;

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const receiver = new SoakReceiver(secret, () => {
  if (isCalm || random.chance(0.25)) return undefined;
  const fault: WebhookFault = random.pick(WEBHOOK_FAULTS);
  faultCounts.add('webhook fault');
  faultCounts.add(`  ${fault}`);
  return fault;
});
const server = new SoakedServer(folder, {
  DATABASE_URL: url,
  DELIVERY_BUDGET_MS: String(DELIVERY_BUDGET_MS),
  REATTACH_MS: '200',
  RATE_LIMIT_PER_MINUTE: '0',
  WEBHOOK_ALLOW_PRIVATE: 'true',
  LOG_LEVEL: 'fatal',
});

/** @returns what is wrong */
async function soak(): Promise<string[]> {
  await receiver.start();
  await server.start();
  const client = new SoakClient(server);
  const world = new SoakWorld(client, random, { url: receiver.url, secret });
  await world.settle();

  const counts = (): (readonly [string, number])[] => [
    ...world.counts.entries(),
    ...faultCounts.entries(),
    ['kill', server.kills],
  ];
  const rare = () =>
    counts().filter(([name, count]) => !name.startsWith(' ') && count < (name === 'kill' ? KILLS_AT_LEAST : AT_LEAST));
  const hasMinimum = !values['no-minimum'];
  const startedAt = performance.now();
  const isOver = (): boolean => {
    const times = (performance.now() - startedAt) / (seconds * 1000);
    return times >= 1 && (!hasMinimum || times >= AT_MOST_TIMES || rare().length === 0);
  };
  const actor = async (): Promise<void> => {
    while (!isOver()) await world.act();
  };
  const killer = async (): Promise<void> => {
    while (!isOver()) {
      await pause((0.5 + random.next()) * PAUSE_BETWEEN_KILLS_MS);
      if (!isOver()) await server.killAndRestart();
    }
  };
  await Promise.all([killer(), ...Array.from({ length: ACTORS }, actor)]);

  isCalm = true;
  await world.finish();
  // A last start, which has to see to whatever the last kill left.
  await server.killAndRestart();
  await answerWhatIsOpen(client, world);
  await untilNothingIsOwed(client, world);
  await server.stop();

  say(
    `seed ${seed}, ${Math.round((performance.now() - startedAt) / 1000)} s, ${url.startsWith('sqlite') ? 'SQLite' : 'PostgreSQL'}`,
  );
  for (const [name, count] of counts()) say(`${String(count).padStart(7)}  ${name}`);
  say(`${String(world.told.size).padStart(7)}  bundles that somebody was told of`);
  return [
    ...(hasMinimum ? rare() : []).map(
      ([name, count]) => `happened too rarely to mean anything: ${name}, ${count} times`,
    ),
    ...world.problems,
    ...receiver.problems,
    ...(await faultsIn(url, world, receiver.calls)),
  ];
}

/** Whatever is open can be answered, now that nothing fails: nothing is stuck. */
async function answerWhatIsOpen(client: SoakClient, world: SoakWorld): Promise<void> {
  for (let page = 0; page < 1000; page += 1) {
    const { body } = await client.make('GET', '/clarification?limit=200', undefined, 200);
    const bundles = body['bundles'] as { pending_id: string }[];
    if (bundles.length === 0) return;
    for (const { pending_id: pendingId } of bundles) {
      const { status, body: said } = await world.respond(pendingId, false);
      if (status === 200 && said['delivered'] === true) continue;
      // Two bundles of one turn: the answer to the first may have opened the next turn.
      if (status !== 409) world.problems.push(`bundle ${pendingId} could not be answered in the end: ${status}`);
    }
  }
  world.problems.push('there is always something open');
}

async function untilNothingIsOwed(client: SoakClient, world: SoakWorld): Promise<void> {
  // What is owed waits for its time; a webhook that moves, if only to where it was, hastens it.
  for (const { id, mode } of world.everySession) {
    if (mode === 'webhook')
      await client.make('PATCH', `/task-sessions/${id}`, { resume: { mode, url: receiver.url } }, 200);
  }
  const giveUpAt = performance.now() + SETTLE_MS;
  while (performance.now() < giveUpAt) {
    const reply = await fetch(`${await server.address()}/metrics`);
    const owed = /^turn_dispatches_owed (\d+)/m.exec(await reply.text())?.[1];
    if (owed === '0') return;
    await pause(200);
  }
}

let faults: string[];
try {
  faults = await soak();
} catch (error) {
  faults = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
} finally {
  server.destroy();
  await receiver.close();
  postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
}
if (faults.length > 0) {
  say(`\n${faults.length} faults, with seed ${seed}:`);
  for (const fault of faults.slice(0, 20)) say(`- ${fault}`);
  process.exit(1);
}
say('nothing lost, nothing twice');
process.exit(0);
