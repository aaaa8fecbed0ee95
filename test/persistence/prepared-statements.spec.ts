import { afterEach, beforeEach, expect, it } from '@jest/globals';
import pg from 'pg';
import { Deadline } from '../../src/common/deadline.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase } from '../../src/persistence/open-database.js';
import { PreparedStatements } from '../../src/persistence/sqlite/prepared-statements.js';
import { openSqliteWriter, rawDatabase } from '../../src/persistence/sqlite/sqlite-data-sources.js';
import type { Tx } from '../../src/persistence/unit-of-work.js';
import { endChildren } from '../support/child.js';
import { describeEachEngine, describeEngine } from '../support/engines.js';
import { holdForeignLock } from '../support/foreign-lock.js';

const soon = () => Deadline.after(20_000);
const NOW = '2026-01-31T09:00:00.123Z';
const INSERT = 'INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, $1, $2, $2)';
const NAMES = 'SELECT id, name FROM workspaces ORDER BY id';

afterEach(endChildren);

describeEachEngine('statements that stay prepared', (engine) => {
  it('are right after the schema was changed by another connection', async () => {
    const database = await engine.createDatabase({ poolSize: 1 });
    const beside = await openDatabase({ url: parseDatabaseUrl(database.url), poolSize: 1, boundMs: 10_000 });
    const alter = (sql: string) => beside.unitOfWork.run('test', soon(), (tx) => tx.query(sql));
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) {
      await database.sql(INSERT, [id, NOW]);
      await database.sql(NAMES);
      await database.reader.query(soon(), NAMES);
    }
    await alter("ALTER TABLE workspaces ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'");
    await alter('CREATE INDEX idx_test_names ON workspaces (name, colour)');
    await database.sql(INSERT, ['h', NOW]);
    expect((await database.sql(NAMES)).rows).toHaveLength(8);
    await alter('DROP INDEX idx_test_names');
    expect((await database.reader.query(soon(), NAMES)).rows).toHaveLength(8);
    await alter('ALTER TABLE workspaces DROP COLUMN colour');
    expect((await database.sql(NAMES)).rows[7]).toEqual({ id: 'h', name: 'h' });
    await beside.close();
  });

  it('are right after one of them was refused, in whatever order', async () => {
    const database = await engine.createDatabase({ poolSize: 1 });
    for (const id of ['a', 'a', 'b', 'b', 'a', 'c']) await database.sql(INSERT, [id, NOW]).catch(() => undefined);
    expect((await database.sql(NAMES)).rows.map((row) => row['id'])).toEqual(['a', 'b', 'c']);
  });

  it('let the database be closed, and opened again', async () => {
    const url = parseDatabaseUrl(await engine.createUrl());
    for (const expected of [1, 2]) {
      const database = await openDatabase({ url, poolSize: 2, boundMs: 10_000 });
      await database.unitOfWork.run('test', soon(), (tx) => tx.query(INSERT, [String(expected), NOW]));
      expect((await database.reader.query(soon(), NAMES)).rows).toHaveLength(expected);
      await database.close();
    }
  });
});

describeEngine('sqlite', 'statements that stay prepared', (engine) => {
  let statements: PreparedStatements;
  let close: () => Promise<void>;
  beforeEach(async () => {
    const dataSource = await openSqliteWriter((await engine.createUrl()).slice('sqlite:'.length), 50);
    statements = new PreparedStatements(rawDatabase(dataSource), 3);
    close = async () => {
      await statements.close();
      await dataSource.destroy();
    };
  });
  afterEach(() => close());

  it('are no more than the bound, of which the last used stay', async () => {
    for (let number = 0; number < 10; number += 1) {
      expect((await statements.run(`SELECT ${number} AS n`, [], true)).rows).toEqual([{ n: number }]);
      expect((await statements.run('SELECT ?1 AS own', [number], true)).rows).toEqual([{ own: number }]);
      expect(statements.size).toBeLessThanOrEqual(3);
    }
    expect(statements.size).toBe(3);
    await statements.close();
    expect(statements.size).toBe(0);
  });

  it('are only those that SQLite ends by itself: after an EXPLAIN a transaction can be committed', async () => {
    await statements.run('BEGIN IMMEDIATE', [], false);
    await statements.run("EXPLAIN QUERY PLAN UPDATE workspaces SET name = 'x'", [], true);
    await statements.run('PRAGMA user_version', [], true);
    await statements.run('COMMIT', [], false);
    expect(statements.size).toBe(2);
  });

  it('do not keep one that failed, which could be running still', async () => {
    await statements.run('SELECT 1 AS n', [], true);
    await expect(statements.run('SELECT json(?1) AS n', ['no JSON'], true)).rejects.toThrow('malformed JSON');
    await expect(statements.run('SELECT no_such_column', [], true)).rejects.toThrow('no such column');
    expect(statements.size).toBe(1);
  });

  it('are not stopped by the deadline of one before them that had waited for a lock', async () => {
    const database = await engine.createDatabase();
    await database.sql(INSERT, ['a', NOW]);
    const lock = await holdForeignLock(database, 'SELECT id FROM workspaces');
    await expect(database.unitOfWork.run('test', Deadline.after(200), (tx) => tx.query(NAMES))).rejects.toMatchObject({
      code: 'temporarily_unavailable',
    });
    await lock.release();
    const endless =
      'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT max(i) FROM n';
    const stopped = database.unitOfWork.run('test', Deadline.after(200), (tx) => tx.query(endless));
    await expect(stopped).rejects.toMatchObject({ code: 'temporarily_unavailable' });
    expect((await database.sql(NAMES)).rows).toHaveLength(1);
  });
});

describeEngine('postgres', 'statements that stay prepared', (engine) => {
  const preparedBy = (tx: Tx) =>
    tx.query<{ n: number }>("SELECT count(*) AS n FROM pg_prepared_statements WHERE name LIKE 'clarion%'");

  it('are run again on another connection when the server has forgotten them', async () => {
    const database = await engine.createDatabase({ poolSize: 1 });
    await database.sql(INSERT, ['a', NOW]);
    await database.sql(NAMES);
    await database.sql('DEALLOCATE ALL');
    expect((await database.sql(NAMES)).rows).toHaveLength(1);
    await database.reader.query(soon(), NAMES);
    await database.reader.query(soon(), 'DEALLOCATE ALL');
    expect((await database.reader.query(soon(), NAMES)).rows).toHaveLength(1);
  });

  it('are run again on another connection when a column has got another type', async () => {
    const database = await engine.createDatabase({ poolSize: 1 });
    await database.sql('CREATE TABLE changing (n integer NOT NULL)');
    await database.sql('INSERT INTO changing (n) VALUES (1)');
    expect((await database.sql('SELECT n FROM changing')).rows).toEqual([{ n: 1 }]);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query('ALTER TABLE changing ALTER COLUMN n TYPE text');
    await client.end();
    expect((await database.sql('SELECT n FROM changing')).rows).toEqual([{ n: '1' }]);
  });

  it('are as many as there are texts, not as there are values', async () => {
    const database = await engine.createDatabase({ poolSize: 1 });
    const count = async () => (await database.unitOfWork.run('test', soon(), preparedBy)).rows[0]?.n;
    await database.sql(INSERT, ['a', NOW]);
    await count();
    const before = await count();
    for (const id of ['b', 'c', 'd']) await database.sql(INSERT, [id, NOW]);
    expect(await count()).toBe(before);
    expect(before).toBeGreaterThan(1);
  });
});
