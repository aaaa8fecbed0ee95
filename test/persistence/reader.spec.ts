import { expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { DatabaseError } from '../../src/persistence/db-error.js';
import { describeEachEngine } from '../support/engines.js';

const soon = () => Deadline.after(10_000);
const NOW = '2026-01-31T09:00:00.120Z';

describeEachEngine('the reader', (engine) => {
  it('refuses to write', async () => {
    const database = await engine.createDatabase();
    await database.sql("INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ('w', 'w', $1, $1)", [NOW]);
    for (const sql of [
      "UPDATE workspaces SET name = 'x'",
      'DELETE FROM workspaces',
      'DELETE FROM workspaces RETURNING id',
      'CREATE TABLE t (id TEXT)',
    ]) {
      await expect(database.reader.query(soon(), sql)).rejects.toThrow(DatabaseError);
    }
    const { rows } = await database.reader.query(soon(), 'SELECT name FROM workspaces');
    expect(rows).toEqual([{ name: 'w' }]);
  });

  it('gives times as ISO text with milliseconds and Z, whole numbers as numbers, and null (TIME)', async () => {
    const database = await engine.createDatabase();
    const times = ['2026-01-31T09:00:00.000Z', '2026-01-31T09:00:00.100Z', '1969-12-31T23:59:59.999Z'];
    for (const [index, at] of times.entries()) {
      await database.sql('INSERT INTO users (id, name, created_at) VALUES ($1, $1, $2)', [String(index), at]);
    }
    await database.sql("INSERT INTO access_tokens (id, user_id, token_hash, created_at) VALUES ('t', '0', 'h', $1)", [
      NOW,
    ]);
    const read = await database.reader.query(soon(), 'SELECT created_at FROM users ORDER BY id');
    expect(read.rows.map((row) => row['created_at'])).toEqual(times);
    const token = await database.reader.query(
      soon(),
      `SELECT created_at, last_used_at, (SELECT count(*) FROM users) AS users, created_at < $1 AS earlier
         FROM access_tokens WHERE created_at >= $2`,
      ['2026-02-01T00:00:00.000Z', NOW],
    );
    expect(token.rows).toEqual([{ created_at: NOW, last_used_at: null, users: 3, earlier: 1 }]);
  });

  it('answers many callers at once, each with its own rows', async () => {
    const database = await engine.createDatabase({ poolSize: 3 });
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        database.reader.query(soon(), 'SELECT CAST($1 AS TEXT) AS own', [String(index)]),
      ),
    );
    expect(answers.map(({ rows }) => Number(rows[0]?.['own']))).toEqual(Array.from({ length: 100 }, (_, i) => i));
  });
});
