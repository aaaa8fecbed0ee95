import { expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { DatabaseError } from '../../src/persistence/db-error.js';
import { describeEachEngine, describeEngine, type TestDatabase } from '../support/engines.js';

const soon = () => Deadline.after(10_000);
const NOW = '2026-01-31T09:00:00.000Z';

async function plant(database: TestDatabase): Promise<void> {
  await database.sql("INSERT INTO tasks (id, title, created_at, updated_at) VALUES ('t', 't', $1, $1)", [NOW]);
  await database.sql("INSERT INTO task_sessions (id, task_id, started_at, updated_at) VALUES ('s', 't', $1, $1)", [
    NOW,
  ]);
  await database.sql(
    `INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
     VALUES ('n', 's', 't', $1, $1, $1)`,
    [NOW],
  );
}

function message(database: TestDatabase, id: string, metadata: string) {
  return database.sql(
    `INSERT INTO task_session_messages (id, task_session_id, turn_id, author_type, metadata, created_at, updated_at)
     VALUES ($1, 's', 'n', 'agent', $2, $3, $3)`,
    [id, metadata, NOW],
  );
}

describeEachEngine('metadata in SQL', (engine) => {
  const { dialect } = engine;

  async function evaluate(database: TestDatabase, expression: string): Promise<Record<string, unknown>> {
    const sql = `SELECT m.id, ${expression} AS value FROM task_session_messages m ORDER BY m.id`;
    const { rows } = await database.reader.query(soon(), sql);
    return Object.fromEntries(rows.map((row) => [row['id'], row['value']]));
  }

  it.each(['', 'not json', '{"a":1', '{"a":1}}', "{'pending_id':'x'", 'NaN-', '\u{1F600}'])(
    'a row whose metadata is %j, which is not JSON, cannot be written or changed to (ODD-ROWS)',
    async (metadata) => {
      const database = await engine.createDatabase();
      await plant(database);
      await expect(message(database, 'm', metadata)).rejects.toThrow(DatabaseError);
      await message(database, 'good', '{}');
      const change = database.sql("UPDATE task_session_messages SET metadata = $1 WHERE id = 'good'", [metadata]);
      await expect(change).rejects.toThrow(DatabaseError);
      expect(await evaluate(database, dialect.metadataDocument('m.metadata'))).toEqual({ good: '{}' });
    },
  );

  it('JSON of every shape is read without harm to other rows (ODD-ROWS)', async () => {
    const database = await engine.createDatabase();
    await plant(database);
    const documents = ['[]', '1', '"text"', 'null', 'true', '{}', '{"pending_id":null}', '{"pending_id":{"a":[1]}}'];
    for (const [index, document] of documents.entries()) await message(database, String(index), document);
    await message(database, 'x', '{"pending_id":"p","status":"","agent_disconnected":true}');
    expect((await evaluate(database, dialect.metadataText('m.metadata', 'pending_id')))['x']).toBe('p');
    expect(await evaluate(database, dialect.metadataIsNonEmptyText('m.metadata', 'pending_id'))).toEqual({
      ...Object.fromEntries(documents.map((_, index) => [String(index), 0])),
      x: 1,
    });
    expect((await evaluate(database, dialect.metadataIsNonEmptyText('m.metadata', 'status')))['x']).toBe(0);
  });

  it('a flag is set for true, "true", 1 and "1" alone', async () => {
    const database = await engine.createDatabase();
    await plant(database);
    const values = [
      'true',
      '"true"',
      '1',
      '"1"',
      'false',
      '"false"',
      '0',
      '"0"',
      '1.0',
      '2',
      '"yes"',
      '""',
      'null',
      '[1]',
      '{}',
    ];
    for (const value of values) await message(database, value, `{"agent_disconnected":${value}}`);
    await message(database, 'absent', '{}');
    const flags = await evaluate(database, dialect.metadataFlag('m.metadata', 'agent_disconnected'));
    const set = Object.keys(flags).filter((id) => flags[id] === 1);
    expect(set.sort()).toEqual(['"1"', '"true"', '1', 'true']);
    expect(Object.values(flags)).not.toContain(null);
  });

  it('marking a row leaves every other key as it was', async () => {
    const database = await engine.createDatabase();
    await plant(database);
    await message(database, 'm', '{"status":"pending","question":{"id":"q1"},"unknown":[1,"ä"]}');
    await message(database, 'n', '{"question":{"id":"q2"}}');
    const marked = await evaluate(database, dialect.metadataMarkedResponding('m.metadata'));
    expect(JSON.parse(marked['m'] as string)).toEqual({
      status: 'responding',
      question: { id: 'q1' },
      unknown: [1, 'ä'],
    });
    expect(JSON.parse(marked['n'] as string)).toEqual({ status: 'responding', question: { id: 'q2' } });
  });

  it('ids and extracted ids are ordered and compared by their bytes, not by a language (PENDING-ID)', async () => {
    const database = await engine.createDatabase();
    await plant(database);
    const ids = ['a', 'B', 'b', 'A', 'Z', '_', '-', '1', 'ab', 'a-b', 'aB', 'ä', 'z', '~'];
    for (const id of ids) await message(database, id, `{"pending_id":"${id}"}`);
    const bytewise = [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

    const byId = await database.reader.query(soon(), 'SELECT id FROM task_session_messages ORDER BY id');
    expect(byId.rows.map((row) => row['id'])).toEqual(bytewise);
    const extracted = dialect.bytewise(dialect.metadataText('metadata', 'pending_id'));
    const byPendingId = await database.reader.query(
      soon(),
      `SELECT id FROM task_session_messages ORDER BY ${extracted}`,
    );
    expect(byPendingId.rows.map((row) => row['id'])).toEqual(bytewise);
    const after = await database.reader.query(
      soon(),
      `SELECT count(*) AS n FROM task_session_messages WHERE ${extracted} > $1`,
      ['Z'],
    );
    expect(after.rows[0]?.['n']).toBe(bytewise.length - 1 - bytewise.indexOf('Z'));
  });
});

describeEngine('postgres', 'the database of these tests', (engine) => {
  it('sorts by a language, so that a comparison which forgot to be bytewise shows', async () => {
    const database = await engine.createDatabase();
    const { rows } = await database.reader.query(soon(), "SELECT 'a'::text < 'B'::text AS by_language");
    expect(rows).toEqual([{ by_language: 1 }]);
  });
});

describeEngine('sqlite', 'JSON5, which SQLite takes for JSON', (engine) => {
  it('reads as strict JSON through the dialect (ODD-ROWS)', async () => {
    const database = await engine.createDatabase();
    await plant(database);
    await message(database, 'm', "{pending_id: 'p', status: 'pending', count: +1, list: [1,], /* why */ hex: 0x10}");
    const { dialect } = engine;
    const { rows } = await database.reader.query(
      soon(),
      `SELECT ${dialect.metadataDocument('metadata')} AS document, ${dialect.metadataText('metadata', 'pending_id')} AS pending_id
         FROM task_session_messages`,
    );
    expect(rows[0]?.['pending_id']).toBe('p');
    expect(rows[0]?.['document']).toBe('{"pending_id":"p","status":"pending","count":1,"list":[1],"hex":16}');
  });
});
