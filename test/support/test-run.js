// What one test run needs from outside: a folder for files, and a PostgreSQL server, or a place on the one that
// TEST_DATABASE_URL names. All of it lives exactly as long as this process's standard input stays open. Whoever
// started it may end in any way, Ctrl-C and kill -9 included: the pipe closes, and everything is stopped and removed.
//
// Argument: the prefix of every database that the run makes. Prints one line of JSON when all is ready,
// {"postgres": "postgres://…", "folder": "…"}, or {"error": "…"}.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout } from 'node:timers';
import pg from 'pg';
import { accepts, freePort, give, IDENTITY, postgresBinaries } from './postgres-binaries.js';

const run = process.argv[2];
const given = process.env.TEST_DATABASE_URL;
const folder = mkdtempSync(join(tmpdir(), 'clarion-test-'));
const LINGER_MS = 15_000;
let server;
let letGo = false;

async function end(status) {
  // Reached or not, the run's own failure has been told already.
  if (given) await dropDatabases().catch(() => undefined);
  if (server?.exitCode === null && server.signalCode === null) {
    const gone = once(server, 'exit');
    server.kill('SIGINT');
    setTimeout(() => server.kill('SIGQUIT'), 3000).unref();
    await gone;
  }
  rmSync(folder, { recursive: true, force: true });
  // Jest's workers outlive it by a moment when it is killed, and their tests may make the folder anew.
  for (let left = letGo ? 0 : LINGER_MS; left > 0; left -= 250) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    rmSync(folder, { recursive: true, force: true });
  }
  process.exit(status);
}

async function dropDatabases() {
  await onGiven(async (client) => {
    const { rows } = await client.query('SELECT datname FROM pg_database WHERE starts_with(datname, $1)', [run]);
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS "${datname}" WITH (FORCE)`);
  });
}

async function onGiven(act) {
  const client = new pg.Client({ connectionString: given, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    await act(client);
  } finally {
    await client.end();
  }
}

async function reached() {
  try {
    await onGiven(() => undefined);
    return given;
  } catch (error) {
    throw new Error(`TEST_DATABASE_URL does not lead to a server (${error.code ?? error.message})`, { cause: error });
  }
}

// From the first line on: the parent may be gone before the server is up.
let ending;
const endOnce = (status) => (ending ??= end(status));
process.stdin
  .on('end', () => endOnce(0))
  .on('error', () => endOnce(0))
  // Said by the teardown of a run that came to its end.
  .on('data', () => (letGo = true));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => endOnce(0));
process.on('uncaughtException', (error) => {
  process.stderr.write(`${error.stack}\n`);
  if (server !== undefined) server.kill('SIGQUIT');
  process.exit(1);
});

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

/** A language's order, so that a comparison which forgot to be bytewise shows; ICU first, it needs no system locale. */
function makeCluster(bin, data) {
  const common = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
  const locales = [
    ['--locale=C', '--locale-provider=icu', '--icu-locale=en-US'],
    ['--locale=en_US.UTF-8'],
    ['--locale=de_DE.UTF-8'],
  ];
  let last;
  for (const locale of locales) {
    last = spawnSync(join(bin, 'initdb'), [...common, ...locale], { ...IDENTITY, cwd: folder, encoding: 'utf8' });
    if (last.status === 0) return;
    rmSync(data, { recursive: true, force: true });
  }
  throw new Error(`initdb failed: ${(last.error?.message ?? last.stderr).trim().split('\n').at(-1)}`);
}

async function start() {
  give(folder);
  chmodSync(folder, 0o755);
  const bin = await postgresBinaries(folder);
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  give(data);
  makeCluster(bin, data);
  const port = await freePort();
  const settings = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=200'];
  const log = [];
  server = spawn(
    join(bin, 'postgres'),
    [
      '-D',
      data,
      '-p',
      String(port),
      '-k',
      folder,
      '-h',
      '127.0.0.1',
      ...settings.flatMap((setting) => ['-c', setting]),
    ],
    { ...IDENTITY, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  server.stderr.on('data', (chunk) => {
    log.push(String(chunk));
    if (log.length > 50) log.shift();
  });
  const startedBy = Date.now() + 30_000;
  // A listening port is not enough for a server that is still starting up, but the log says it.
  while (!(log.join('').includes('ready to accept connections') && (await accepts(port)))) {
    if (server.exitCode !== null) throw new Error(`postgres ended: ${log.join('').trim().split('\n').at(-1)}`);
    if (Date.now() > startedBy) throw new Error('postgres did not accept connections within 30 s');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

try {
  const files = join(folder, 'files');
  mkdirSync(files, { mode: 0o700 });
  say({ postgres: await (given ? reached() : start()), folder: files });
} catch (error) {
  say({ error: error.message });
  letGo = true;
  endOnce(1);
}
