import { afterEach, expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { TemporarilyUnavailableError } from '../../src/common/domain-error.js';
import type { Tx } from '../../src/persistence/unit-of-work.js';
import { barrier } from '../support/barrier.js';
import { endChildren } from '../support/child.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { holdForeignLock } from '../support/foreign-lock.js';
import { postgresActivity } from '../support/postgres-activity.js';
import { until } from '../support/until.js';

const soon = () => Deadline.after(15_000);
const NOW = '2026-01-31T09:00:00.123Z';
const ROWS = 'SELECT id FROM workspaces';
// Runs for minutes on either engine unless it is stopped.
const ENDLESS =
  'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT max(i) FROM n';

const rename = (tx: Tx, name: string) => tx.query("UPDATE workspaces SET name = $1 WHERE id = 'w1'", [name]);
const nameOf = async (database: TestDatabase) =>
  (await database.reader.query(soon(), "SELECT name FROM workspaces WHERE id = 'w1'")).rows[0]?.['name'];

afterEach(endChildren);

describeEachEngine('BUDGET: a deadline', (engine) => {
  async function withWorkspace(poolSize = 4): Promise<TestDatabase> {
    // Longer than the test may take, so that what only the server's own limit ends shows as left behind.
    const database = await engine.createDatabase({ poolSize, boundMs: 60_000 });
    await database.sql('INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, $1, $2, $2)', [
      'w1',
      NOW,
    ]);
    return database;
  }

  /** Nothing of ours runs, waits or holds a transaction, and the whole pool is there to be used. */
  async function expectNothingLeft(database: TestDatabase, poolSize: number): Promise<void> {
    if (engine.name === 'postgres') {
      await until(async () => (await postgresActivity(database.url)).busy === 0);
      expect((await postgresActivity(database.url)).connections).toBeLessThanOrEqual(2 * poolSize);
      const all = barrier(poolSize);
      const together = Array.from({ length: poolSize }, () =>
        database.unitOfWork.run('test', soon(), async (tx) => {
          await tx.query('SELECT 1');
          await all();
        }),
      );
      await Promise.all(together);
    }
    await Promise.all(Array.from({ length: 2 * poolSize }, () => database.reader.query(soon(), ROWS)));
    await database.unitOfWork.run('test', soon(), (tx) => rename(tx, 'in order'));
    expect(await nameOf(database)).toBe('in order');
  }

  it('ends the wait for what somebody else holds while it is still held; the same work is done once it is free', async () => {
    const database = await withWorkspace();
    const lock = await holdForeignLock(database, ROWS);
    const work = (tx: Tx) => rename(tx, 'changed');

    const refused = database.unitOfWork.run('test', Deadline.after(150), work);
    await expect(refused).rejects.toThrow(TemporarilyUnavailableError);
    expect(await nameOf(database)).toBe('w1');

    const patient = database.unitOfWork.run('test', soon(), work);
    await lock.release();
    await patient;
    expect(await nameOf(database)).toBe('changed');
    await expectNothingLeft(database, 4);
  });

  it('leaks no connection and no query over 200 refused rounds', async () => {
    const database = await withWorkspace();
    const lock = await holdForeignLock(database, ROWS);
    const refusals = { writes: 0, reads: 0 };
    const count = (kind: keyof typeof refusals) => (error: unknown) => {
      expect(error).toBeInstanceOf(TemporarilyUnavailableError);
      refusals[kind] += 1;
    };
    for (let round = 0; round < 200; round += 10) {
      const writes = Array.from({ length: 10 }, (_, index) =>
        database.unitOfWork.run('test', Deadline.after(1 + 3 * index), (tx) => rename(tx, 'x')).catch(count('writes')),
      );
      const reads = Array.from({ length: 10 }, (_, index) =>
        database.reader.query(Deadline.after(1 + 3 * index), ENDLESS).catch(count('reads')),
      );
      await Promise.all([...writes, ...reads]);
    }
    expect(refusals).toEqual({ writes: 200, reads: 200 });
    await lock.release();
    await expectNothingLeft(database, 4);
    expect(await nameOf(database)).toBe('in order');
  });

  it.each(['read', 'change'])('stops a running %s in the database and undoes the work around it', async (kind) => {
    const database = await withWorkspace();
    const run = database.unitOfWork.run('test', Deadline.after(150), async (tx) => {
      await rename(tx, 'half done');
      await tx.query(
        kind === 'read' ? ENDLESS : `UPDATE workspaces SET name = (${ENDLESS})`.replace('max(i)', "max(i) || ''"),
      );
    });
    await expect(run).rejects.toThrow(TemporarilyUnavailableError);
    await expectNothingLeft(database, 4);
    expect((await database.sql('SELECT name FROM workspaces')).rows).toEqual([{ name: 'in order' }]);
  });

  it('is asked once more before COMMIT', async () => {
    const database = await withWorkspace();
    const deadline = Deadline.after(100);
    const run = database.unitOfWork.run('test', deadline, async (tx) => {
      await rename(tx, 'too late');
      await until(() => deadline.isOver);
    });
    await expect(run).rejects.toThrow(TemporarilyUnavailableError);
    expect(await nameOf(database)).toBe('w1');
    await expectNothingLeft(database, 4);
  });

  it('refuses a read that waits behind others, and stops only the read that it belongs to', async () => {
    const database = await withWorkspace(1);
    const long = database.reader.query(Deadline.after(400), ENDLESS);
    const behind = database.reader.query(Deadline.after(50), ROWS);
    const patient = database.reader.query(soon(), ROWS);
    await expect(behind).rejects.toThrow(TemporarilyUnavailableError);
    await expect(long).rejects.toThrow(TemporarilyUnavailableError);
    expect((await patient).rows).toEqual([{ id: 'w1' }]);
    await expectNothingLeft(database, 1);
  });

  it('refuses work that waits behind other work, without having begun it', async () => {
    const database = await withWorkspace(1);
    let begun = false;
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const long = database.unitOfWork.run('test', soon(), async (tx) => {
      await rename(tx, 'first');
      await held;
    });
    const behind = database.unitOfWork.run('test', Deadline.after(50), async () => {
      begun = true;
    });
    await expect(behind).rejects.toThrow(TemporarilyUnavailableError);
    letGo();
    await long;
    expect(begun).toBe(false);
    expect(await nameOf(database)).toBe('first');
    await expectNothingLeft(database, 1);
  });

  it('that is already over begins nothing', async () => {
    const database = await withWorkspace();
    const over = Deadline.after(0);
    let begun = false;
    const run = database.unitOfWork.run('test', over, async () => {
      begun = true;
    });
    await expect(run).rejects.toThrow(TemporarilyUnavailableError);
    await expect(database.reader.query(over, ROWS)).rejects.toThrow(TemporarilyUnavailableError);
    expect(begun).toBe(false);
  });

  it('says what it was told to say', async () => {
    const database = await withWorkspace();
    const deadline = Deadline.after(0, { message: 'clarification response is temporarily unavailable' });
    await expect(database.reader.query(deadline, ROWS)).rejects.toThrow(
      'clarification response is temporarily unavailable',
    );
  });
});
