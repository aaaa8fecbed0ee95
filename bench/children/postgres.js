// A PostgreSQL server with durable writes, on a data directory that is kept from run to run. It lives exactly as long as
// this process's standard input stays open, so that it never outlives whoever started it.
//
// Arguments: the folder of the data directory; a folder for the socket and the log. Prints one line of JSON when all is
// ready, {"postgres": "postgres://…"}, or {"error": "…"}.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout } from 'node:timers';
import { accepts, freePort, give, IDENTITY, postgresBinaries } from '../../test/support/postgres-binaries.js';

const [, , kept, runFolder] = process.argv;
const READY_WITHIN_MS = 60_000;
// What makes a commit durable stays as PostgreSQL ships it. The rest keeps its background work out of the samples.
const SETTINGS = [
  'fsync=on',
  'synchronous_commit=on',
  'full_page_writes=on',
  'shared_buffers=256MB',
  'maintenance_work_mem=256MB',
  'max_wal_size=4GB',
  'checkpoint_timeout=30min',
  'autovacuum_naptime=1h',
  'max_connections=200',
];
let server;

async function end(status) {
  if (server?.exitCode === null && server.signalCode === null) {
    const gone = once(server, 'exit');
    server.kill('SIGINT');
    setTimeout(() => server.kill('SIGQUIT'), 15_000).unref();
    await gone;
  }
  process.exit(status);
}

// From the first line on: the parent may be gone before the server is up. Ctrl-C is the parent's to act on.
let ending;
const endOnce = (status) => (ending ??= end(status));
process.stdin
  .on('end', () => endOnce(0))
  .on('error', () => endOnce(0))
  .resume();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function run(program, args) {
  const { status, stderr, error } = spawnSync(program, args, { ...IDENTITY, cwd: kept, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} failed: ${(error?.message ?? stderr).trim().split('\n').at(-1)}`);
}

/** Whole or not at all: a cluster whose making was interrupted is never used. */
function ensureCluster(bin) {
  const data = join(kept, 'data');
  if (existsSync(join(data, 'PG_VERSION'))) return data;
  const fresh = join(kept, 'new');
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { mode: 0o700 });
  give(fresh);
  run(join(bin, 'initdb'), ['-D', fresh, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']);
  renameSync(fresh, data);
  return data;
}

async function start() {
  give(kept);
  give(runFolder);
  if (spawnSync('test', ['-x', kept], { ...IDENTITY, cwd: '/' }).status !== 0) {
    throw new Error(`its user cannot reach ${kept}; name another folder by --cache`);
  }
  const bin = await postgresBinaries(runFolder);
  const data = ensureCluster(bin);
  const port = await freePort();
  const log = join(runFolder, 'postgres.log');
  const out = openSync(log, 'a');
  const options = ['-D', data, '-p', String(port), '-k', runFolder, '-h', '127.0.0.1'];
  server = spawn(join(bin, 'postgres'), [...options, ...SETTINGS.flatMap((setting) => ['-c', setting])], {
    ...IDENTITY,
    cwd: kept,
    stdio: ['ignore', out, out],
    // In a process group of its own: Ctrl-C must not stop it before its clients have let go.
    detached: true,
  });
  const startedBy = Date.now() + READY_WITHIN_MS;
  // A listening port is not enough for a server that is still starting up, but the log says it.
  while (!(readFileSync(log, 'utf8').includes('ready to accept connections') && (await accepts(port)))) {
    if (server.exitCode !== null) throw new Error(readFileSync(log, 'utf8').trim().split('\n').slice(-3).join('; '));
    if (Date.now() > startedBy) throw new Error('it did not accept connections in time');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

try {
  say({ postgres: await start() });
} catch (error) {
  say({ error: error.message });
  endOnce(1);
}
