import { expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { Deadline } from '../../src/common/deadline.js';
import { describeEngine } from '../support/engines.js';

const INSERT = 'INSERT INTO workspaces (id, name, created_at, updated_at) VALUES (?1, ?1, ?2, ?2)';
const NOW = '2026-01-31T09:00:00.000Z';

function signal(): { given: Promise<void>; give: () => void } {
  let give: () => void = () => undefined;
  const given = new Promise<void>((resolve) => (give = resolve));
  return { given, give };
}

// Why there is a unit of work of our own: see docs/adr and src/persistence/sqlite/sqlite-unit-of-work.ts.
describeEngine('sqlite', 'an acknowledged write beside one that fails', (engine) => {
  it("is lost by TypeORM's own transactions, which share one connection", async () => {
    const url = await engine.createUrl();
    const naive = await new DataSource({ type: 'sqlite', database: url.slice('sqlite:'.length) }).initialize();
    const opened = signal();
    const acknowledged = signal();
    const failing = naive.transaction(async (manager) => {
      await manager.query(INSERT, ['failing', NOW]);
      opened.give();
      await acknowledged.given;
      throw new Error('refused');
    });
    await opened.given;
    await naive.transaction((manager) => manager.query(INSERT, ['acknowledged', NOW]));
    acknowledged.give();
    await expect(failing).rejects.toThrow('refused');

    const rows: unknown = await naive.query('SELECT id FROM workspaces');
    await naive.destroy();
    // If this ever fails, TypeORM has learnt to keep transactions apart and the unit of work may become simpler.
    expect(rows).toEqual([]);
  });

  it('is kept by the unit of work', async () => {
    const database = await engine.createDatabase();
    const deadline = Deadline.after(10_000);
    const opened = signal();
    const goOn = signal();
    const failing = database.unitOfWork.run('failing', deadline, async (tx) => {
      await tx.query(INSERT.replaceAll('?', '$'), ['failing', NOW]);
      opened.give();
      await goOn.given;
      throw new Error('refused');
    });
    await opened.given;
    const other = database.unitOfWork.run('other', deadline, (tx) =>
      tx.query(INSERT.replaceAll('?', '$'), ['acknowledged', NOW]),
    );
    // The other one has not begun, so it cannot have been acknowledged; nothing of either can be read.
    expect((await database.reader.query(deadline, 'SELECT id FROM workspaces')).rows).toEqual([]);
    goOn.give();
    await expect(failing).rejects.toThrow('refused');
    await other;
    expect((await database.reader.query(deadline, 'SELECT id FROM workspaces')).rows).toEqual([{ id: 'acknowledged' }]);
  });
});
