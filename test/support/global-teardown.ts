import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import pg from 'pg';

/** Drops what the run made on a given server, or stops the server of the run and waits until it is gone. */
export default async function globalTeardown(): Promise<void> {
  const server = (globalThis as { clarionTestServer?: ChildProcess }).clarionTestServer;
  if (server === undefined) await dropDatabases();
  else if (server.exitCode === null) {
    const gone = once(server, 'exit');
    server.stdin?.end();
    await gone;
  }
  rmSync(process.env['CLARION_TEST_FOLDER'] ?? '', { recursive: true, force: true });
}

async function dropDatabases(): Promise<void> {
  const client = new pg.Client({ connectionString: process.env['CLARION_TEST_POSTGRES'] });
  await client.connect();
  try {
    const { rows } = await client.query<{ datname: string }>('SELECT datname FROM pg_database WHERE datname LIKE $1', [
      `${process.env['CLARION_TEST_RUN']}%`,
    ]);
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS "${datname}" WITH (FORCE)`);
  } finally {
    await client.end();
  }
}
