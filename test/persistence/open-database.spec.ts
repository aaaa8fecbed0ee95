import { expect, it } from '@jest/globals';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { Deadline } from '../../src/common/deadline.js';
import { StartupError } from '../../src/common/startup-error.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase } from '../../src/persistence/open-database.js';
import { describeEachEngine, describeEngine } from '../support/engines.js';
import { postgresActivity } from '../support/postgres-activity.js';
import { until } from '../support/until.js';

const soon = () => Deadline.after(10_000);
const open = (url: string, boundMs = 5000) => openDatabase({ url: parseDatabaseUrl(url), poolSize: 2, boundMs });

async function refusal(url: string, boundMs?: number): Promise<string> {
  const error = (await open(url, boundMs).catch((caught: unknown) => caught)) as Error;
  expect(error).toBeInstanceOf(StartupError);
  expect(error.message).not.toMatch(/\n|s3cret/);
  return error.message;
}

describeEngine('sqlite', 'opening a database', (engine) => {
  it('makes missing folders with mode 0700 and every file with 0600 (FILE-MODE)', async () => {
    const folder = `${(await engine.createUrl()).slice('sqlite:'.length)}.folder`;
    const database = await open(`sqlite:${join(folder, 'deeper', 'clarion.db')}`);
    await database.unitOfWork.run('test', soon(), (tx) =>
      tx.query("INSERT INTO users (id, name, created_at) VALUES ('u', 'u', $1)", ['2026-01-31T09:00:00.000Z']),
    );
    for (const each of [folder, join(folder, 'deeper')]) expect((await stat(each)).mode & 0o777).toBe(0o700);
    const files = await readdir(join(folder, 'deeper'));
    expect(files.sort()).toEqual(['clarion.db', 'clarion.db-shm', 'clarion.db-wal']);
    for (const file of files) expect((await stat(join(folder, 'deeper', file))).mode & 0o777).toBe(0o600);
    await database.close();
    expect(await readdir(join(folder, 'deeper'))).toEqual(['clarion.db']);
  });

  it('keeps every acknowledged write through a power cut: write-ahead log, synchronous FULL', async () => {
    const database = await engine.createDatabase();
    const settings: Record<string, unknown> = {};
    await database.unitOfWork.run('test', soon(), async (tx) => {
      for (const name of ['journal_mode', 'synchronous', 'foreign_keys', 'busy_timeout']) {
        settings[name] = Object.values((await tx.query(`PRAGMA ${name}`)).rows[0] ?? {})[0];
      }
    });
    expect(settings).toEqual({ journal_mode: 'wal', synchronous: 2, foreign_keys: 1, busy_timeout: 50 });
  });

  it('says in one line why a file cannot be used', async () => {
    const file = (await engine.createUrl({ migrated: false })).slice('sqlite:'.length);
    await writeFile(file, 'This is no database. '.repeat(100));
    expect(await refusal(`sqlite:${file}`)).toBe(
      `cannot open the database sqlite:${file}: sqlite SQLITE_NOTADB: file is not a database`,
    );
    await mkdir(`${file}.folder`);
    expect(await refusal(`sqlite:${file}.folder`)).toMatch(/^cannot open the database sqlite:.*SQLITE_CANTOPEN/);
    expect(await refusal(`sqlite:${file}/clarion.db`)).toMatch(/^cannot open the database sqlite:.*ENOTDIR|EEXIST/);
  });
});

describeEngine('postgres', 'opening a database', (engine) => {
  it('says in one line, without credentials (NO-SECRETS), why a server cannot be used', async () => {
    const url = new URL(await engine.createUrl());
    url.password = 's3cret';
    url.pathname = '/no_such_database';
    expect(await refusal(url.toString())).toMatch(/^cannot open the database postgres:\/\/[^@]+\/no_such_database: /);
    url.port = '1';
    expect(await refusal(url.toString())).toBe(
      `cannot open the database postgres://${url.host}/no_such_database: postgres ECONNREFUSED: no server answers`,
    );
  });

  it('does not wait longer than its bound for a server that says nothing', async () => {
    const mute = createServer((socket) => socket.resume());
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    const { port } = mute.address() as AddressInfo;
    expect(await refusal(`postgres://u:s3cret@127.0.0.1:${port}/db`, 100)).toMatch(/no connection/);
    await new Promise((resolve) => mute.close(resolve));
  });

  it('works again after the server has ended every connection', async () => {
    const database = await engine.createDatabase({ poolSize: 2 });
    const { rows: before } = await database.reader.query(soon(), 'SELECT pg_backend_pid() AS pid');
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'clarion'",
    );
    await client.end();
    await until(async () => (await postgresActivity(database.url)).connections === 0);
    // Until this process has heard of it too, a request may still be told to come again.
    await until(() =>
      database.reader.query(soon(), 'SELECT 1').then(
        () => true,
        (error: unknown) => {
          expect(error).toMatchObject({ code: 'temporarily_unavailable' });
          return false;
        },
      ),
    );
    const { rows: after } = await database.reader.query(soon(), 'SELECT pg_backend_pid() AS pid');
    expect(after).not.toEqual(before);
    await until(() =>
      database.sql('SELECT 1').then(
        () => true,
        () => false,
      ),
    );
  });
});

describeEachEngine('opening a database', (engine) => {
  it('needs no instance lock, so that commands work beside a server', async () => {
    const database = await engine.createDatabase();
    const command = await open(database.url);
    const write = (id: string) => (by: typeof command) =>
      by.unitOfWork.run('test', soon(), (tx) =>
        tx.query('INSERT INTO users (id, name, created_at) VALUES ($1, $1, $2)', [id, '2026-01-31T09:00:00.000Z']),
      );
    await Promise.all([write('a')(command), database.sql("SELECT 'beside'"), write('b')(command)]);
    const { rows } = await database.reader.query(soon(), 'SELECT id FROM users ORDER BY id');
    expect(rows).toEqual([{ id: 'a' }, { id: 'b' }]);
    await command.close();
  });
});
