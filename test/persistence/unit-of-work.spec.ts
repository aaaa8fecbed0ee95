import { expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { ConflictError } from '../../src/common/domain-error.js';
import { describeEachEngine } from '../support/engines.js';

const soon = () => Deadline.after(5000);
const NOW = '2026-01-31T09:00:00.123Z';

describeEachEngine('the unit of work', (engine) => {
  it('returns what its work returned, and the change is there for reads and for the next work', async () => {
    const database = await engine.createDatabase();
    const result = await database.unitOfWork.run('test', soon(), async (tx) => {
      const inserted = await tx.query(
        'INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, $2, $3, $3)',
        ['w1', 'Ärzte', NOW],
      );
      const again = await tx.query('UPDATE workspaces SET owner_id = $2 WHERE id = $1 RETURNING id, owner_id', [
        'w1',
        'u',
      ]);
      return { inserted, again };
    });
    expect(result.inserted).toEqual({ rows: [], affected: 1 });
    expect(result.again).toEqual({ rows: [{ id: 'w1', owner_id: 'u' }], affected: 1 });
    const read = await database.reader.query(
      soon(),
      'SELECT id, name, owner_id, created_at FROM workspaces WHERE id = $1',
      ['w1'],
    );
    expect(read).toEqual({ rows: [{ id: 'w1', name: 'Ärzte', owner_id: 'u', created_at: NOW }], affected: 1 });
    const count = await database.sql('SELECT count(*) AS n, count(*) = $1 AS one FROM workspaces', [1]);
    expect(count.rows).toEqual([{ n: 1, one: 1 }]);
  });

  it('rolls back and passes on an error of the work as it is', async () => {
    const database = await engine.createDatabase();
    const refusal = new ConflictError('no');
    const run = database.unitOfWork.run('test', soon(), async (tx) => {
      await tx.query('INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, $1, $2, $2)', ['w1', NOW]);
      throw refusal;
    });
    await expect(run).rejects.toBe(refusal);
    expect((await database.sql('SELECT id FROM workspaces')).rows).toEqual([]);
  });
});
