import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

declare global {
  // Jest's two hooks run in one process and share nothing else.
  var clarionTestServer: ChildProcess | undefined;
}

/**
 * Starts one PostgreSQL for the whole run, or takes the one that TEST_DATABASE_URL names, and a folder for SQLite
 * files. Loaded by Jest as CommonJS, without relative imports.
 */
export default async function globalSetup(_: unknown, project: { rootDir: string }): Promise<void> {
  // Every database of this run bears this name, so that two runs can share a given server.
  process.env['CLARION_TEST_RUN'] = `clarion_test_${randomBytes(4).toString('hex')}`;
  const given = process.env['TEST_DATABASE_URL'];
  const chosen = given !== undefined && given !== '' ? given : await startServer(project.rootDir);
  process.env['CLARION_TEST_POSTGRES'] = chosen;
  process.env['CLARION_TEST_FOLDER'] = mkdtempSync(join(tmpdir(), 'clarion-test-'));
}

async function startServer(rootDir: string): Promise<string> {
  // In a process group of its own: Ctrl-C in the terminal must not stop it before the tests let go of it.
  const child = spawn(process.execPath, [join(rootDir, 'test/support/postgres-server.js')], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  globalThis.clarionTestServer = child;
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as { url: string } | { error: string };
    if ('url' in said) return said.url;
    throw new Error(cannotStart(said.error));
  }
  throw new Error(cannotStart('it ended without a word'));
}

function cannotStart(reason: string): string {
  return `no PostgreSQL for the tests: ${reason}; run npm ci with optional dependencies, install a server, or set TEST_DATABASE_URL`;
}
