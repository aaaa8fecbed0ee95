import { expect, it } from '@jest/globals';
import pg from 'pg';
import { Deadline } from '../../src/common/deadline.js';
import { TemporarilyUnavailableError } from '../../src/common/domain-error.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { DatabaseError } from '../../src/persistence/db-error.js';
import { openDatabase } from '../../src/persistence/open-database.js';
import { SqliteConnection } from '../../src/persistence/sqlite/sqlite-connection.js';
import { openSqliteWriter } from '../../src/persistence/sqlite/sqlite-data-sources.js';
import { SqliteUnitOfWork } from '../../src/persistence/sqlite/sqlite-unit-of-work.js';
import { CommitOutcomeUnknownError, type Tx } from '../../src/persistence/unit-of-work.js';
import { cuttingProxy } from '../support/cutting-proxy.js';
import { describeEngine } from '../support/engines.js';
import { until } from '../support/until.js';

const soon = () => Deadline.after(10_000);
const NOW = '2026-01-31T09:00:00.123Z';
const insert = (tx: Tx, id: string) =>
  tx.query('INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, $1, $2, $2)', [id, NOW]);

async function idsIn(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ id: string }>('SELECT id FROM workspaces ORDER BY id');
  await client.end();
  return rows.map((row) => row.id);
}

describeEngine('postgres', 'the outcome of a COMMIT (R4a)', (engine) => {
  it('is unknown when the connection died before the reply, here after it took effect; the next work goes on', async () => {
    const url = await engine.createUrl();
    const proxy = await cuttingProxy(url);
    const database = await openDatabase({ url: parseDatabaseUrl(proxy.url), poolSize: 1, boundMs: 10_000 });
    // As the message ends on the wire; BEGIN names READ COMMITTED.
    proxy.cutAfterSending('COMMIT\0');
    let runs = 0;
    const run = database.unitOfWork.run('test', soon(), (tx) => {
      runs += 1;
      return insert(tx, 'a');
    });
    await expect(run).rejects.toThrow(CommitOutcomeUnknownError);
    expect(runs).toBe(1);
    await database.unitOfWork.run('test', soon(), (tx) => insert(tx, 'b'));
    expect(await idsIn(url)).toEqual(['a', 'b']);
    await database.close();
    await proxy.close();
  });

  it('is known when the connection died earlier: nothing was changed', async () => {
    const url = await engine.createUrl();
    const proxy = await cuttingProxy(url);
    const database = await openDatabase({ url: parseDatabaseUrl(proxy.url), poolSize: 1, boundMs: 10_000 });
    proxy.cutAfterSending('INSERT');
    const run = database.unitOfWork.run('test', soon(), (tx) => insert(tx, 'a'));
    await expect(run).rejects.toThrow(TemporarilyUnavailableError);

    expect(await idsIn(url)).toEqual([]);
    await database.unitOfWork.run('test', soon(), (tx) => insert(tx, 'c'));
    expect(await idsIn(url)).toEqual(['c']);
    await database.close();
    await proxy.close();
  });

  it('is refused, not unknown, when a deferred rule of the database says no', async () => {
    const database = await engine.createDatabase();
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query('CREATE TABLE parent (id int PRIMARY KEY)');
    await client.query('CREATE TABLE child (parent int REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)');
    await client.end();
    await expect(database.sql('INSERT INTO child (parent) VALUES (1)')).rejects.toMatchObject({
      name: 'DatabaseError',
      violation: 'foreign_key',
    });
  });

  it('is awaited past the deadline (BUDGET-COMMIT)', async () => {
    const database = await engine.createDatabase();
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(`
      CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON workspaces DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION slowly();`);
    await client.end();
    const deadline = Deadline.after(2000);
    const run = database.unitOfWork.run('test', deadline, async (tx) => {
      await insert(tx, 'a');
      await until(() => deadline.remainingMs < 500);
      return 'committed';
    });
    await expect(run).resolves.toBe('committed');
    expect(deadline.isOver).toBe(true);
    expect(await idsIn(database.url)).toEqual(['a']);
  });
});

describeEngine('sqlite', 'the outcome of a COMMIT (R4a)', (engine) => {
  /** A real connection on which COMMIT fails as told, once. */
  async function failing(code: string) {
    const url = await engine.createUrl();
    const dataSource = await openSqliteWriter(url.slice('sqlite:'.length), 50);
    let left = 1;
    const commands: string[] = [];
    class Failing extends SqliteConnection {
      override async command(sql: string): Promise<DatabaseError | undefined> {
        commands.push(sql);
        if (sql !== 'COMMIT' || left === 0) return super.command(sql);
        left -= 1;
        return new DatabaseError(code, code, code === 'SQLITE_BUSY' ? 'rolled-back' : 'unavailable', 'other');
      }
    }
    const connection = new Failing(dataSource);
    const unitOfWork = new SqliteUnitOfWork(connection);
    const close = async () => {
      await unitOfWork.close();
      await connection.close();
      await dataSource.destroy();
    };
    return { unitOfWork, commands, close };
  }

  it('is unknown after a failed write to the disk, and the transaction is ended', async () => {
    const { unitOfWork, commands, close } = await failing('SQLITE_IOERR');
    await expect(unitOfWork.run('test', soon(), (tx) => insert(tx, 'a'))).rejects.toThrow(CommitOutcomeUnknownError);
    expect(commands).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK']);
    await unitOfWork.run('test', soon(), (tx) => insert(tx, 'b'));
    await close();
  });

  it('is known when the disk is full', async () => {
    const { unitOfWork, commands, close } = await failing('SQLITE_FULL');
    await expect(unitOfWork.run('test', soon(), (tx) => insert(tx, 'a'))).rejects.toThrow(TemporarilyUnavailableError);
    expect(commands).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK']);
    await close();
  });
});
