import { expect, it } from '@jest/globals';
import { CallerGoneError, Deadline } from '../../src/common/deadline.js';
import { ConflictError } from '../../src/common/domain-error.js';
import { DatabaseError } from '../../src/persistence/db-error.js';
import { InvalidStatementError } from '../../src/persistence/statement.js';
import type { SqlValue, Tx } from '../../src/persistence/unit-of-work.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';

const soon = () => Deadline.after(10_000);
const NOW = '2026-01-31T09:00:00.123Z';
const INSERT = 'INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, $2, $3, $3)';

const insert = (tx: Tx, id: string) => tx.query(INSERT, [id, `name of ${id}`, NOW]);
const ids = async (database: TestDatabase) =>
  (await database.sql('SELECT id FROM workspaces ORDER BY id')).rows.map((row) => row['id']);

describeEachEngine('the unit of work', (engine) => {
  it('returns what its work returned, and the change is there for reads and for the next work', async () => {
    const database = await engine.createDatabase();
    const result = await database.unitOfWork.run('test', soon(), async (tx) => {
      const inserted = await tx.query(INSERT, ['w1', 'Ärzte 🩺', NOW]);
      const updated = await tx.query('UPDATE workspaces SET owner_id = $2 WHERE id = $1 RETURNING id, owner_id', [
        'w1',
        'u',
      ]);
      return { inserted, updated };
    });
    expect(result.inserted).toEqual({ rows: [], affected: 1 });
    expect(result.updated).toEqual({ rows: [{ id: 'w1', owner_id: 'u' }], affected: 1 });

    const columns = 'SELECT id, name, owner_id, created_at FROM workspaces WHERE id = $1';
    expect(await database.reader.query(soon(), columns, ['w1'])).toEqual({
      rows: [{ id: 'w1', name: 'Ärzte 🩺', owner_id: 'u', created_at: NOW }],
      affected: 1,
    });
  });

  it('counts and reads alike whatever the statement looks like', async () => {
    const database = await engine.createDatabase();
    await database.unitOfWork.run('test', soon(), async (tx) => {
      await insert(tx, 'w1');
      await insert(tx, 'w2');
      const change = async (sql: string, params: readonly SqlValue[] = []) => (await tx.query(sql, params)).affected;
      expect(await change("update workspaces\n  set name = 'x'")).toBe(2);
      expect(await change('  UPDATE workspaces SET name = $2 WHERE id = $1', ['w1', 'y'])).toBe(1);
      expect(await change('DELETE FROM workspaces WHERE id = $1', ['none'])).toBe(0);
      expect(await change(`${INSERT} ON CONFLICT (id) DO NOTHING`, ['w1', 'z', NOW])).toBe(0);
      const deleted = await tx.query("DELETE FROM workspaces WHERE name = 'x' RETURNING id");
      expect(deleted).toEqual({ rows: [{ id: 'w2' }], affected: 1 });
      const none = await tx.query('UPDATE workspaces SET name = $1 WHERE id = $2 RETURNING id', ['a', 'none']);
      expect(none).toEqual({ rows: [], affected: 0 });
      const facts = await tx.query('SELECT count(*) AS n, count(*) = $1 AS one, sum(1) AS s FROM workspaces', [1]);
      expect(facts.rows).toEqual([{ n: 1, one: 1, s: 1 }]);
    });
  });

  it('binds a value to its number, in whatever order and however often it appears', async () => {
    const database = await engine.createDatabase();
    const { rows } = await database.sql(
      "SELECT CAST($2 AS TEXT) AS b, CAST($1 AS TEXT) AS a, CAST($2 AS TEXT) AS again, '$1 ?' AS text",
      ['one', 'two'],
    );
    expect(rows).toEqual([{ b: 'two', a: 'one', again: 'two', text: '$1 ?' }]);
  });

  it('rolls back and passes on an error of the work as it is', async () => {
    const database = await engine.createDatabase();
    const refusal = new ConflictError('no');
    const run = database.unitOfWork.run('test', soon(), async (tx) => {
      await insert(tx, 'w1');
      throw refusal;
    });
    await expect(run).rejects.toBe(refusal);
    expect(await ids(database)).toEqual([]);
  });

  it('rolls back when a statement failed, even if the work made nothing of it', async () => {
    const database = await engine.createDatabase();
    const run = database.unitOfWork.run('test', soon(), async (tx) => {
      await insert(tx, 'w1');
      await insert(tx, 'w1').catch(() => undefined);
      await insert(tx, 'w2').catch(() => undefined);
      return 'fine';
    });
    const error = await run.catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(DatabaseError);
    expect(error).toMatchObject({ name: 'DatabaseError', violation: 'unique' });
    expect(await ids(database)).toEqual([]);
  });

  it('lets the work turn a refused row into an error of its own', async () => {
    const database = await engine.createDatabase();
    const taken = new ConflictError('taken');
    const run = database.unitOfWork.run('test', soon(), async (tx) => {
      await insert(tx, 'w1');
      await insert(tx, 'w1').catch((error: unknown) => {
        throw error instanceof DatabaseError && error.violation === 'unique' ? taken : error;
      });
    });
    await expect(run).rejects.toBe(taken);
  });

  it('keeps the values of a failed statement out of the error (NO-SECRETS)', async () => {
    const database = await engine.createDatabase();
    await database.sql(INSERT, ['secret-id', 'secret-name', NOW]);
    const failing: [string, string[]][] = [
      [INSERT, ['secret-id', 'secret-name', NOW]],
      ['SELECT id FROM workspaces WHERE CAST($1 AS TEXT) = no_such_column', ['secret']],
    ];
    for (const [sql, params] of failing) {
      const error = (await database.sql(sql, params).catch((caught: unknown) => caught)) as Error;
      expect(error).toBeInstanceOf(DatabaseError);
      expect(JSON.stringify([error, error.message, error.stack, error.cause])).not.toContain('secret');
    }
  });

  it('gives a transaction that is useless once its work has returned', async () => {
    const database = await engine.createDatabase();
    let kept: Tx | undefined;
    await database.unitOfWork.run('test', soon(), async (tx) => {
      kept = tx;
    });
    await expect(kept?.query('SELECT 1')).rejects.toThrow(/transaction is over/);
    const failing = database.unitOfWork.run('test', soon(), async (tx) => {
      kept = tx;
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    await expect(kept?.query('SELECT 1')).rejects.toThrow(/transaction is over/);
  });

  it('runs statements of one work one by one, and rolls back work that did not wait for its own', async () => {
    const database = await engine.createDatabase();
    await database.unitOfWork.run('test', soon(), (tx) => Promise.all(['a', 'b', 'c'].map((id) => insert(tx, id))));
    expect(await ids(database)).toEqual(['a', 'b', 'c']);

    const careless = database.unitOfWork.run('test', soon(), async (tx) => {
      void insert(tx, 'd');
      void insert(tx, 'e');
    });
    await expect(careless).rejects.toThrow('returned before its statements had ended');
    expect(await ids(database)).toEqual(['a', 'b', 'c']);
  });

  it('changes nothing for a caller that went away before COMMIT (CALLER-GONE)', async () => {
    const database = await engine.createDatabase();
    const caller = new AbortController();
    const deadline = Deadline.after(10_000, { callerGone: caller.signal });
    const run = database.unitOfWork.run('test', deadline, async (tx) => {
      await insert(tx, 'w1');
      caller.abort();
    });
    await expect(run).rejects.toThrow(CallerGoneError);
    expect(await ids(database)).toEqual([]);
    await expect(database.unitOfWork.run('test', deadline, async () => 1)).rejects.toThrow(CallerGoneError);
  });

  it('refuses values that a driver would quietly turn into something else', async () => {
    const database = await engine.createDatabase();
    const wrong: [unknown, string][] = [
      [undefined, 'of type undefined'],
      [{ a: 1 }, 'an object'],
      [['a'], 'an object'],
      [10n, 'of type bigint'],
      [true, 'of type boolean'],
      [new Date(0), 'a Date (bind its ISO text)'],
      [0.5, 'a number that is not a 32-bit integer'],
      [Number.NaN, 'a number that is not a 32-bit integer'],
      [Date.parse(NOW), 'a number that is not a 32-bit integer'],
      ['a\u0000b', 'text with U+0000 or a lone surrogate'],
      ['a\ud800b', 'text with U+0000 or a lone surrogate'],
    ];
    for (const [value, problem] of wrong) {
      const run = database.sql('SELECT id FROM workspaces WHERE id = $1', [value as SqlValue]);
      await expect(run).rejects.toThrow(new InvalidStatementError(`the value of $1 is ${problem}`));
      const read = database.reader.query(soon(), 'SELECT id FROM workspaces WHERE id = $1', [value as SqlValue]);
      await expect(read).rejects.toThrow(InvalidStatementError);
    }
    // An id with U+0000 in it broke neither a connection nor the next statement.
    expect((await database.reader.query(soon(), 'SELECT id FROM workspaces')).rows).toEqual([]);
    expect(await ids(database)).toEqual([]);
  });

  it('refuses statements that one of the engines would understand differently', async () => {
    const database = await engine.createDatabase();
    const wrong: [string, SqlValue[]][] = [
      ['SELECT $1', []],
      ['SELECT 1', [1]],
      ['DELETE FROM workspaces; DELETE FROM tasks', []],
      ['SELECT ?', []],
      ["WITH w AS (SELECT 'a' AS id) DELETE FROM workspaces WHERE id IN (SELECT id FROM w)", []],
    ];
    for (const [sql, params] of wrong) await expect(database.sql(sql, params)).rejects.toThrow(InvalidStatementError);
  });

  it('enforces foreign keys', async () => {
    const database = await engine.createDatabase();
    const orphan = database.sql(
      'INSERT INTO access_tokens (id, user_id, token_hash, created_at) VALUES ($1, $2, $1, $3)',
      ['t', 'nobody', NOW],
    );
    await expect(orphan).rejects.toMatchObject({ name: 'DatabaseError', violation: 'foreign_key' });
  });

  it('lets what has begun end before it closes, and accepts nothing after', async () => {
    const database = await engine.createDatabase();
    let begun: () => void = () => undefined;
    const started = new Promise<void>((resolve) => (begun = resolve));
    const run = database.unitOfWork.run('test', soon(), async (tx) => {
      begun();
      for (const id of ['a', 'b', 'c']) await insert(tx, id);
      return (await tx.query('SELECT id FROM workspaces')).rows.length;
    });
    await started;
    const closed = database.close();
    await expect(database.sql('SELECT 1')).rejects.toMatchObject({ code: 'temporarily_unavailable' });
    expect(await run).toBe(3);
    await closed;
  });
});
