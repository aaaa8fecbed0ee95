import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Leftovers } from '../lib/leftovers.js';
import { startPostgres } from '../lib/postgres-server.js';
import { CROWDS, type CrowdName } from './crowds.js';
import type { CrowdOutcome, Sizes } from './crowd.js';
import { runLoad } from './load.js';
import { ProbedServer, type Measurement, type Memory } from './probed-server.js';
import { deadlocksOf } from './deadlocks.js';
import { detailsOf, reportOf, type Row } from './report.js';
import { createUsers, withWorkspaces } from './users.js';
import type { User } from './world.js';

const HELP = `npm run bench:crowds -- [--database sqlite|postgres|both|URL] [--only NAME,…] [--quick] [--json FILE]

Lets crowds loose on the product, as built by npm run build and running in a process of its own, and prints what became
of them and of the server. Faults (an error, a lost answer, two winners, somebody who waits for ever) make it exit 1;
what depends on the machine is told with whether it meets its target, and never fails.

  --database   sqlite, postgres (one that is started for it), both (default), or a URL of an empty database
  --only       some of: ${Object.keys(CROWDS).join(', ')}
  --quick      smaller crowds, for a look: a minute or so for each database
  --json FILE  also writes what was measured
  --node-options OPTIONS  for the server's process, e.g. --cpu-prof
`;

const FULL: Sizes = {
  rounds: 30,
  sessions: 600,
  waiters: 5_000,
  streams: 1_000,
  streamSeconds: 15,
  asksPerSecond: 200,
  askSeconds: 60,
  overloadSeconds: 20,
  overloadCallers: 3_000,
  overloadWaits: 1_000,
  overloadStreams: 300,
  limitedRequests: 3_000,
};
const QUICK: Sizes = {
  rounds: 5,
  sessions: 100,
  waiters: 1_000,
  streams: 300,
  streamSeconds: 4,
  asksPerSecond: 200,
  askSeconds: 6,
  overloadSeconds: 5,
  overloadCallers: 1_000,
  overloadWaits: 300,
  overloadStreams: 100,
  limitedRequests: 1_500,
};
const LIMIT_PER_MINUTE = 600;

class UsageError extends Error {}

interface Options {
  readonly databases: readonly string[];
  readonly crowds: readonly CrowdName[];
  readonly sizes: Sizes;
  readonly json: string | undefined;
  readonly nodeOptions: readonly string[];
}

function readOptions(): Options | 'help' {
  const { values } = parsed();
  if (values.help) return 'help';
  const { database } = values;
  if (!['sqlite', 'postgres', 'both'].includes(database) && !/^(sqlite:|postgres(ql)?:\/\/)/.test(database)) {
    throw new UsageError(`--database takes sqlite, postgres, both or a URL, not "${database}"`);
  }
  const names = values.only?.split(',') ?? Object.keys(CROWDS);
  for (const name of names) if (!Object.hasOwn(CROWDS, name)) throw new UsageError(`there is no crowd "${name}"`);
  return {
    databases: database === 'both' ? ['sqlite', 'postgres'] : [database],
    crowds: (Object.keys(CROWDS) as CrowdName[]).filter((name) => names.includes(name)),
    sizes: values.quick ? QUICK : FULL,
    json: values.json,
    nodeOptions: values['node-options']?.split(' ') ?? [],
  };
}

function parsed() {
  try {
    return parseArgs({
      options: {
        database: { type: 'string', default: 'both' },
        only: { type: 'string' },
        quick: { type: 'boolean', default: false },
        json: { type: 'string' },
        'node-options': { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? (error.message.split('. ')[0] ?? '') : String(error));
  }
}

/** What a crowd cost the server, beside what became of it. */
async function measured(name: CrowdName, server: ProbedServer, users: readonly User[], sizes: Sizes) {
  const start: Memory = await server.ask('begin');
  const outcome: CrowdOutcome = await runLoad({ crowd: name, url: server.url, users, sizes }, server).catch(
    (error: unknown) => ({
      did: 'nothing',
      faults: [error instanceof Error ? error.message : String(error)],
      figures: [],
    }),
  );
  const end: Measurement = await server.ask('end');
  return { start, end, outcome };
}

const leftovers = new Leftovers();

async function run(options: Options): Promise<readonly Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'clarion-crowds-'));
  leftovers.folder = folder;
  // PostgreSQL may run as another user, who must get to its own folder in it.
  chmodSync(folder, 0o711);
  const rows: Row[] = [];
  for (const database of options.databases) {
    const own = database === 'postgres' ? (leftovers.postgres = await startPostgres(folder, folder)).url : undefined;
    const url = own ?? (database === 'sqlite' ? `sqlite:${join(folder, 'crowds.db')}` : database);
    rows.push(...(await onDatabase(url, folder, options)));
  }
  return rows;
}

async function onDatabase(url: string, folder: string, options: Options): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const env = { DATABASE_URL: url };
  const tokens = await createUsers(url);
  const limited: readonly CrowdName[] = options.crowds.filter((name) => name === 'rate-limit');
  const others = options.crowds.filter((name) => name !== 'rate-limit');
  for (const [names, settings] of [
    [others, {}],
    [limited, { RATE_LIMIT_PER_MINUTE: String(LIMIT_PER_MINUTE) }],
  ] as const) {
    if (names.length === 0) continue;
    const server = await ProbedServer.start(folder, { ...env, ...settings }, options.nodeOptions);
    let stopped: string | undefined;
    try {
      const users = await withWorkspaces(server.url, tokens);
      // What is compiled and loaded at the first use is nobody's crowd.
      if (names === others)
        await runLoad({ crowd: 'one-bundle', url: server.url, users, sizes: { ...QUICK, rounds: 3 } }, server);
      for (const name of names) {
        const before = await deadlocksOf(url);
        process.stderr.write(`${labelOf(url)} ${name} …\n`);
        const { start, end, outcome } = await measured(name, server, users, options.sizes);
        const deadlocks = before === undefined ? undefined : ((await deadlocksOf(url)) ?? 0) - before;
        const row = { database: labelOf(url), crowd: name, ...outcome, start, end, deadlocks };
        process.stderr.write(detailsOf(row));
        rows.push(row);
      }
    } finally {
      stopped = await server.stop();
    }
    if (stopped !== undefined) {
      rows.push({ database: labelOf(url), crowd: 'shutdown', did: '', faults: [stopped], figures: [] });
    }
  }
  return rows;
}

const labelOf = (url: string): string => (url.startsWith('sqlite') ? 'SQLite' : 'PostgreSQL');

try {
  const options = readOptions();
  if (options === 'help') {
    process.stdout.write(HELP);
  } else {
    const rows = await run(options);
    process.stdout.write(reportOf(rows));
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(rows, null, 2)}\n`);
    process.exitCode = rows.some(({ faults }) => faults.length > 0) ? 1 : 0;
  }
  await leftovers.cleanUp();
} catch (error) {
  const isStopped = leftovers.isCleaning;
  await leftovers.cleanUp();
  if (isStopped) process.exit(130);
  process.stderr.write(`bench:crowds: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
