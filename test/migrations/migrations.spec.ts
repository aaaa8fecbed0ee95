import { expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import sqlite3 from 'sqlite3';
import { MIGRATIONS } from '../../migrations/index.js';
import { Deadline } from '../../src/common/deadline.js';
import { StartupError } from '../../src/common/startup-error.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase, type Database } from '../../src/persistence/open-database.js';
import { describeEachEngine, type TestEngine } from '../support/engines.js';

const soon = () => Deadline.after(10_000);
const ORDERED = 'idx_messages_metadata_pending_id_lookup_ordered';
const FIRST_TABLES = [
  'access_tokens',
  'task_session_messages',
  'task_session_turns',
  'task_sessions',
  'tasks',
  'users',
  'workspaces',
];
const TABLES = [...FIRST_TABLES, 'migrations', 'server_starts'].sort();

const migrated = (url: string): Promise<Database> =>
  openDatabase({ url: parseDatabaseUrl(url), poolSize: 2, boundMs: 10_000 });

/** Statements that are none of ours, past the unit of work, which takes one at a time. */
async function script(url: string, sql: string): Promise<void> {
  if (url.startsWith('sqlite:')) {
    const database = new sqlite3.Database(url.slice('sqlite:'.length));
    const done = (act: (callback: (error: Error | null) => void) => void) =>
      new Promise<void>((resolve, reject) => act((error) => (error === null ? resolve() : reject(error))));
    await done((callback) => database.exec(sql, callback));
    await done((callback) => database.close(callback));
    return;
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

async function namesOf(engine: TestEngine, database: Database, kind: 'table' | 'index'): Promise<string[]> {
  const sql = {
    sqlite: `SELECT name FROM sqlite_master WHERE type = '${kind}' AND name NOT LIKE 'sqlite_%' ORDER BY name`,
    postgres: `SELECT ${kind}name AS name FROM pg_${kind === 'table' ? 'tables' : 'indexes'}
                WHERE schemaname = 'public' ORDER BY ${kind}name COLLATE "C"`,
  }[engine.name];
  const { rows } = await database.reader.query<{ name: string }>(soon(), sql);
  return rows.map(({ name }) => name);
}

/** Every index as the database writes its definition. */
async function definitions(engine: TestEngine, database: Database): Promise<unknown[]> {
  const sql = {
    sqlite: "SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name",
    postgres: `SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname COLLATE "C"`,
  }[engine.name];
  return [...(await database.reader.query(soon(), sql)).rows];
}

async function allRows(database: Database): Promise<Record<string, unknown[]>> {
  const tables: Record<string, unknown[]> = {};
  for (const table of FIRST_TABLES) {
    tables[table] = [...(await database.reader.query(soon(), `SELECT * FROM ${table} ORDER BY id`)).rows];
  }
  return tables;
}

const executed = async (database: Database) =>
  (await database.reader.query(soon(), 'SELECT name FROM migrations ORDER BY id')).rows.map((row) => row['name']);

describeEachEngine('the migrations', (engine) => {
  it('make exactly these tables on a fresh database, and none that records claims: no clarification_resolutions (TABLES, P1)', async () => {
    const database = await migrated(await engine.createUrl({ migrated: false }));
    expect(await namesOf(engine, database, 'table')).toEqual(TABLES);
    const columns = await database.reader.query<{ name: string }>(
      soon(),
      engine.name === 'sqlite'
        ? "SELECT m.name || '.' || c.name AS name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
        : "SELECT table_name || '.' || column_name AS name FROM information_schema.columns WHERE table_schema = 'public'",
    );
    const suspects = columns.rows.filter(({ name }) => /claim|resolution|resolved|answered|winner/.test(name));
    expect(suspects).toEqual([]);
    expect(await executed(database)).toEqual(MIGRATIONS.map(({ name }) => name));
    await database.close();
  });

  it('add the ordered pending-id index and keep the two older ones (INDEX)', async () => {
    const database = await migrated(await engine.createUrl({ migrated: false }));
    expect(await namesOf(engine, database, 'index')).toEqual(
      expect.arrayContaining(['idx_messages_metadata_pending_id', 'idx_messages_metadata_pending_id_lookup', ORDERED]),
    );
    await database.close();
  });

  it('upgrade a database of the first migration and rewrite no row (INDEX)', async () => {
    const url = await engine.createUrl({ migrated: false });
    const fixture = new URL(`./fixtures/first-migration.${engine.name}.sql`, import.meta.url);
    await script(url, await readFile(fixture, 'utf8'));
    const old = await openDatabase({ url: parseDatabaseUrl(url), poolSize: 2, boundMs: 10_000, migrate: false });
    const before = await allRows(old);
    expect(before['task_session_messages']).toHaveLength(9);
    expect(await namesOf(engine, old, 'index')).not.toContain(ORDERED);
    await old.close();

    const upgraded = await migrated(url);
    // With further columns, but nothing else in those that were there.
    const after = await allRows(upgraded);
    expect(Object.keys(after)).toEqual(Object.keys(before));
    for (const table of FIRST_TABLES) expect([table, after[table]]).toMatchObject([table, before[table] ?? []]);
    expect(await executed(upgraded)).toEqual(MIGRATIONS.map(({ name }) => name));
    const fresh = await migrated(await engine.createUrl({ migrated: false }));
    for (const kind of ['table', 'index'] as const) {
      expect(await namesOf(engine, upgraded, kind)).toEqual(await namesOf(engine, fresh, kind));
    }
    const pendingId = engine.dialect.metadataText('metadata', 'pending_id');
    const { rows } = await upgraded.reader.query(
      soon(),
      `SELECT id FROM task_session_messages WHERE ${pendingId} = $1 ORDER BY created_at, id`,
      ['pending-open'],
    );
    expect(rows).toEqual([{ id: 'm-01' }, { id: 'm-02' }]);
    await upgraded.close();
    await fresh.close();
  });

  it('may be run again: those after the first, when their record was lost, and all at every start (INDEX)', async () => {
    const url = await engine.createUrl();
    await script(url, "DELETE FROM migrations WHERE name <> 'CreateCoreTables1764547200000'");
    for (let start = 0; start < 2; start += 1) {
      const database = await migrated(url);
      expect(await executed(database)).toEqual(MIGRATIONS.map(({ name }) => name));
      await database.close();
    }
  });

  it('make indexes anew that an earlier one made with another definition (INDEX, PLAN)', async () => {
    const fresh = await migrated(await engine.createUrl({ migrated: false }));
    const url = await engine.createUrl();
    for (const sql of [
      'DROP INDEX idx_messages_unkeyed_questions',
      'CREATE INDEX idx_messages_unkeyed_questions ON task_session_messages (id)',
      'DROP INDEX idx_messages_moved_questions',
      'CREATE INDEX idx_messages_moved_questions ON task_session_messages (id)',
      'DROP INDEX idx_messages_open_bundles_of_turn',
      "DELETE FROM migrations WHERE name LIKE 'RebuildOpenBundleIndexes%' OR name LIKE 'AddSupersededBy%'",
    ]) {
      await script(url, sql);
    }
    const upgraded = await migrated(url);
    expect(await definitions(engine, upgraded)).toEqual(await definitions(engine, fresh));
    await upgraded.close();
    await fresh.close();
  });

  it('may be run by two processes at once', async () => {
    const url = await engine.createUrl({ migrated: false });
    // A file made by one of them is opened by the other only once it is there.
    await (await openDatabase({ url: parseDatabaseUrl(url), poolSize: 2, boundMs: 10_000, migrate: false })).close();
    const databases = await Promise.all([migrated(url), migrated(url)]);
    for (const database of databases) {
      expect(await executed(database)).toEqual(MIGRATIONS.map(({ name }) => name));
      await database.close();
    }
  });

  it('change nothing when one of them fails, and the start says why in one line', async () => {
    const url = await engine.createUrl({ migrated: false });
    // Stands where the second migration wants an index: the first one must go with it.
    await script(url, `CREATE TABLE ${engine.name === 'sqlite' ? ORDERED : 'tasks'} (id TEXT)`);
    const failed = (await migrated(url).catch((error: unknown) => error)) as Error;
    expect(failed).toBeInstanceOf(StartupError);
    expect(failed.message).toMatch(/^cannot migrate the database: .+/);
    expect(failed.message).not.toContain('\n');
    const database = await openDatabase({ url: parseDatabaseUrl(url), poolSize: 2, boundMs: 10_000, migrate: false });
    expect(await namesOf(engine, database, 'table')).toEqual([engine.name === 'sqlite' ? ORDERED : 'tasks']);
    await database.close();
  });
});

describeEachEngine('the start', (engine) => {
  it('refuses a database that a newer version has migrated, and changes nothing', async () => {
    const url = await engine.createUrl();
    await script(url, "INSERT INTO migrations (timestamp, name) VALUES (9999999999999, 'FromTheFuture9999999999999')");
    await script(url, `DROP INDEX ${ORDERED}`);
    await expect(migrated(url)).rejects.toThrow(StartupError);
    await expect(migrated(url)).rejects.toThrow(/made by a newer version/);
    const database = await openDatabase({ url: parseDatabaseUrl(url), poolSize: 2, boundMs: 10_000, migrate: false });
    expect(await namesOf(engine, database, 'index')).not.toContain(ORDERED);
    await database.close();
  });

  const pendingId = engine.dialect.metadataText('metadata', 'pending_id');
  const key = `(${pendingId})`;
  const where = `WHERE ${pendingId} IS NOT NULL`;
  const on = 'task_session_messages';

  it.each([
    ['on other columns', `CREATE INDEX ${ORDERED} ON ${on} (created_at, id)`],
    ['without its condition', `CREATE INDEX ${ORDERED} ON ${on} (${key}, created_at, id)`],
    ['with another condition', `CREATE INDEX ${ORDERED} ON ${on} (${key}, created_at, id) WHERE ${pendingId} IS NULL`],
    ['in another order', `CREATE INDEX ${ORDERED} ON ${on} (${key}, id, created_at) ${where}`],
    [
      'on another key',
      `CREATE INDEX ${ORDERED} ON ${on} (${key.replace('pending_id', 'question_id')}, created_at, id) ${where}`,
    ],
    ['that is unique', `CREATE UNIQUE INDEX ${ORDERED} ON ${on} (${key}, created_at, id) ${where}`],
    ['that descends', `CREATE INDEX ${ORDERED} ON ${on} (${key} DESC, created_at, id) ${where}`],
    ['on another table', `CREATE INDEX ${ORDERED} ON tasks (created_at, id)`],
    ['that is a table', `CREATE TABLE ${ORDERED} (id TEXT)`],
    ['that is a view', `CREATE VIEW ${ORDERED} AS SELECT 1 AS one`],
  ])('is refused by an index of the right name %s, which is left alone (INDEX)', async (_, wrong) => {
    const url = await engine.createUrl();
    await script(url, `DROP INDEX ${ORDERED}; ${wrong}`);
    const failed = (await migrated(url).catch((error: unknown) => error)) as Error;
    expect(failed).toBeInstanceOf(StartupError);
    expect(failed.message).toContain(ORDERED);
    expect(failed.message).not.toContain('\n');
  });

  it('takes the index as it is when somebody made the same one by hand, and makes it when it was dropped (INDEX)', async () => {
    const url = await engine.createUrl();
    await script(
      url,
      `DROP INDEX ${ORDERED}; CREATE  INDEX "${ORDERED}" on ${on}\n ( ${key} , created_at,id) ${where}`,
    );
    await (await migrated(url)).close();
    await script(url, `DROP INDEX ${ORDERED}`);
    const database = await migrated(url);
    expect(await namesOf(engine, database, 'index')).toContain(ORDERED);
    await database.close();
  });
});
