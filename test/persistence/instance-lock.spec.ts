import { afterEach, expect, it } from '@jest/globals';
import { stat } from 'node:fs/promises';
import pg from 'pg';
import { StartupError } from '../../src/common/startup-error.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { acquireInstanceLock } from '../../src/persistence/acquire-instance-lock.js';
import { endChildren, startChild } from '../support/child.js';
import { describeEachEngine, describeEngine } from '../support/engines.js';
import { until } from '../support/until.js';

const never = (error: StartupError): never => {
  throw error;
};

afterEach(endChildren);

describeEachEngine('LOCK: one server per database', (engine) => {
  it('refuses a second server in another process with one line that names the database and no credentials', async () => {
    const url = await engine.createUrl();
    const first = startChild('hold-instance-lock.ts', [url]);
    expect(await first.nextLine()).toBe('locked');

    const second = startChild('hold-instance-lock.ts', [url]);
    const { display } = parseDatabaseUrl(url);
    expect(await second.nextLine()).toBe(`another server is running on ${display}; stop it first`);
    expect(await second.ended).toBe(1);
  });

  it('refuses a second server in this process too, and not one on another database', async () => {
    const url = parseDatabaseUrl(await engine.createUrl());
    const lock = await acquireInstanceLock(url, never);
    await expect(acquireInstanceLock(url, never)).rejects.toThrow(StartupError);
    // Trying must not have weakened the lock that is held.
    await expect(acquireInstanceLock(url, never)).rejects.toThrow(/another server is running/);
    const other = await acquireInstanceLock(parseDatabaseUrl(await engine.createUrl()), never);
    await other.release();
    await lock.release();
    const again = await acquireInstanceLock(url, never);
    await again.release();
  });

  it('is free again when the process that had it was killed with SIGKILL', async () => {
    const url = await engine.createUrl();
    const child = startChild('hold-instance-lock.ts', [url]);
    expect(await child.nextLine()).toBe('locked');
    await child.kill('SIGKILL');
    const lock = await acquireInstanceLock(parseDatabaseUrl(url), never);
    await lock.release();
  });
});

describeEngine('sqlite', 'LOCK: one server per database', (engine) => {
  it('makes data and lock files that nobody else may read (FILE-MODE)', async () => {
    const url = await engine.createUrl({ migrated: false });
    const file = url.slice('sqlite:'.length);
    const lock = await acquireInstanceLock(parseDatabaseUrl(url), never);
    for (const made of [file, `${file}.lock`]) expect((await stat(made)).mode & 0o777).toBe(0o600);
    await lock.release();
  });
});

describeEngine('postgres', 'LOCK: one server per database', (engine) => {
  const HOLDERS = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2";

  async function withClient<T>(url: string, act: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return await act(client);
    } finally {
      await client.end();
    }
  }

  it('takes the lock again when its connection drops', async () => {
    const url = await engine.createUrl();
    const lock = await acquireInstanceLock(parseDatabaseUrl(url), never);
    await withClient(url, async (client) => {
      const own = `${HOLDERS} AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
      const before = (await client.query(own)).rows[0].pid;
      await client.query('SELECT pg_terminate_backend($1)', [before]);
      await until(async () => {
        const { rows } = await client.query(own);
        return rows.length === 1 && rows[0].pid !== before;
      });
    });
    await expect(acquireInstanceLock(parseDatabaseUrl(url), never)).rejects.toThrow(/another server is running/);
    await lock.release();
  });

  it('tells this process to stop when another server was quicker after the connection dropped', async () => {
    const url = await engine.createUrl();
    const lost: StartupError[] = [];
    const lock = await acquireInstanceLock(parseDatabaseUrl(url), (error) => lost.push(error));
    await withClient(url, async (client) => {
      const own = `${HOLDERS} AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
      const { rows } = await client.query(own);
      // Queued behind the lock, so that it is granted the moment the first connection ends.
      const usurper = new pg.Client({ connectionString: url });
      await usurper.connect();
      const taking = usurper.query('SELECT pg_advisory_lock(4711002, hashtext(current_schema()::text))');
      await until(async () => {
        const waiting = await client.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
        return waiting.rows.length > 0;
      });
      await client.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
      await taking;
      await until(() => lost.length > 0);
      await usurper.end();
    });
    expect(lost.map((error) => error.message)).toEqual([
      `another server is running on ${parseDatabaseUrl(url).display}; stop it first`,
    ]);
    await lock.release();
  });
});
