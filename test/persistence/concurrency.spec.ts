import { expect, it } from '@jest/globals';
import pg from 'pg';
import { Deadline } from '../../src/common/deadline.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase } from '../../src/persistence/open-database.js';
import type { UnitOfWork } from '../../src/persistence/unit-of-work.js';
import { barrier } from '../support/barrier.js';
import { describeEachEngine, describeEngine, type TestDatabase } from '../support/engines.js';

const soon = () => Deadline.after(20_000);
const NOW = '2026-01-31T09:00:00.123Z';

async function plant(database: TestDatabase, ...ids: string[]): Promise<void> {
  for (const id of ids) {
    await database.sql("INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, '0', $2, $2)", [id, NOW]);
  }
}

describeEachEngine('concurrent work', (engine) => {
  it('loses no update when each reads under a lock what it then writes', async () => {
    const database = await engine.createDatabase();
    await plant(database, 'w');
    const increment = () =>
      database.unitOfWork.run('test', soon(), async (tx) => {
        const { rows } = await tx.query<{ name: string }>(
          `SELECT name FROM workspaces WHERE id = 'w'${tx.dialect.lockRows}`,
        );
        await tx.query("UPDATE workspaces SET name = $1 WHERE id = 'w'", [String(Number(rows[0]?.name) + 1)]);
      });
    await Promise.all(Array.from({ length: 64 }, increment));
    expect((await database.sql('SELECT name FROM workspaces')).rows).toEqual([{ name: '64' }]);
  });

  it('keeps what one committed when its neighbour fails, in any mixture', async () => {
    const database = await engine.createDatabase();
    const runs = Array.from({ length: 40 }, (_, index) =>
      database.unitOfWork.run('test', soon(), async (tx) => {
        await tx.query('INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, $1, $2, $2)', [
          String(index).padStart(2, '0'),
          NOW,
        ]);
        if (index % 3 === 0) throw new Error('refused');
        return index;
      }),
    );
    const acknowledged = (await Promise.allSettled(runs)).flatMap((run) =>
      run.status === 'fulfilled' ? [run.value] : [],
    );
    expect(acknowledged).toEqual(Array.from({ length: 40 }, (_, index) => index).filter((index) => index % 3 !== 0));
    const { rows } = await database.reader.query(soon(), 'SELECT id FROM workspaces ORDER BY id');
    expect(rows.map((row) => Number(row['id']))).toEqual(acknowledged);
  });

  it('is not seen by reads before it has committed', async () => {
    const database = await engine.createDatabase();
    await database.unitOfWork.run('test', soon(), async (tx) => {
      await tx.query("INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ('w', 'w', $1, $1)", [NOW]);
      expect((await database.reader.query(soon(), 'SELECT id FROM workspaces')).rows).toEqual([]);
    });
    expect((await database.reader.query(soon(), 'SELECT id FROM workspaces')).rows).toEqual([{ id: 'w' }]);
  });
});

describeEngine('sqlite', 'concurrent work', (engine) => {
  it('is serial, in the order in which it was asked for', async () => {
    const database = await engine.createDatabase();
    const steps: string[] = [];
    const runs = ['a', 'b', 'c'].map((name) =>
      database.unitOfWork.run(name, soon(), async (tx) => {
        steps.push(`${name} begins`);
        await tx.query('SELECT 1');
        await tx.query('SELECT 2');
        steps.push(`${name} ends`);
      }),
    );
    await Promise.all(runs);
    expect(steps).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  it('waits for a command beside the server that writes to the same file', async () => {
    const database = await engine.createDatabase();
    const command = await openDatabase({ url: parseDatabaseUrl(database.url), poolSize: 1, boundMs: 10_000 });
    await plant(database, 'w');
    const rename = (by: UnitOfWork) =>
      by.run('test', soon(), async (tx) => {
        const { rows } = await tx.query<{ name: string }>("SELECT name FROM workspaces WHERE id = 'w'");
        await tx.query("UPDATE workspaces SET name = $1 WHERE id = 'w'", [String(Number(rows[0]?.name) + 1)]);
      });
    await Promise.all(
      Array.from({ length: 40 }, (_, index) => rename(index % 2 ? command.unitOfWork : database.unitOfWork)),
    );
    expect((await database.sql('SELECT name FROM workspaces')).rows).toEqual([{ name: '40' }]);
    await command.close();
  });
});

describeEngine('postgres', 'work that the database rolled back', (engine) => {
  it('is run again from the start after a dead-lock, so that both callers succeed', async () => {
    const database = await engine.createDatabase();
    await plant(database, 'a', 'b');
    const bothHoldOne = barrier(2);
    let attempts = 0;
    const lockInOrder = (first: string, second: string) =>
      database.unitOfWork.run('test', soon(), async (tx) => {
        attempts += 1;
        const add = "UPDATE workspaces SET name = name || '+' WHERE id = $1";
        await tx.query(add, [first]);
        await bothHoldOne();
        await tx.query(add, [second]);
      });
    await Promise.all([lockInOrder('a', 'b'), lockInOrder('b', 'a')]);
    expect(attempts).toBe(3);
    const { rows } = await database.sql('SELECT id, name FROM workspaces ORDER BY id');
    expect(rows).toEqual([
      { id: 'a', name: '0++' },
      { id: 'b', name: '0++' },
    ]);
  });

  it('is run again after a serialisation failure, whatever the work made of it, until the deadline', async () => {
    const database = await engine.createDatabase();
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(
      "CREATE FUNCTION fail() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$",
    );
    await client.end();
    let attempts = 0;
    const value = await database.unitOfWork.run('test', soon(), async (tx) => {
      attempts += 1;
      if (attempts < 3) {
        await tx.query('SELECT fail()').catch(() => {
          throw new Error('misread');
        });
      }
      return 'done';
    });
    expect([value, attempts]).toEqual(['done', 3]);

    const hopeless = database.unitOfWork.run('test', Deadline.after(100), (tx) => tx.query('SELECT fail()'));
    await expect(hopeless).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  });
});
