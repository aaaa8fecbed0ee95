import type { QueryRunner } from 'typeorm';
import { StartupError } from '../common/startup-error.js';
import { dialectOf, type Engine } from './dialect.js';

const NAME = 'idx_messages_metadata_pending_id_lookup_ordered';
const TABLE = 'task_session_messages';

/** The definition that every look-up by pending id relies on, from the same helper that writes those look-ups. */
export function pendingIdIndexDefinition(engine: Engine): string {
  const pendingId = dialectOf(engine).metadataText('metadata', 'pending_id');
  const key = engine === 'postgres' ? `(${pendingId})` : pendingId;
  return `INDEX ${NAME} ON ${TABLE} (${key}, created_at, id) WHERE ${pendingId} IS NOT NULL`;
}

/**
 * Makes the index if it is missing, then looks at what bears its name: IF NOT EXISTS is silent about something else.
 *
 * @throws StartupError when that is not the index
 */
export async function ensurePendingIdIndex(runner: QueryRunner, engine: Engine): Promise<void> {
  const expected = pendingIdIndexDefinition(engine);
  await runner.query(`CREATE ${expected.replace('INDEX', 'INDEX IF NOT EXISTS')}`);
  const found = engine === 'sqlite' ? await inSqlite(runner) : await inPostgres(runner);
  if (found === undefined || comparable(found) !== comparable(`CREATE ${expected}`)) {
    throw new StartupError(
      `the database holds something else under the name ${NAME}; drop it and start again (expected: CREATE ${expected})`,
    );
  }
}

async function inSqlite(runner: QueryRunner): Promise<string | undefined> {
  const rows = (await runner.query(`SELECT sql FROM sqlite_master WHERE type = 'index' AND name = '${NAME}'`)) as {
    sql: string;
  }[];
  return rows[0]?.sql;
}

async function inPostgres(runner: QueryRunner): Promise<string | undefined> {
  const rows = (await runner.query(
    `SELECT pg_get_indexdef(i.indexrelid) AS sql
       FROM pg_index i
       JOIN pg_class c ON c.oid = i.indexrelid
      WHERE i.indrelid = '${TABLE}'::regclass AND c.relname = '${NAME}' AND i.indisvalid AND i.indisready`,
  )) as { sql: string }[];
  // Written out by the server: the schema, the method and the casts of constants are its additions.
  return rows[0]?.sql.replace(/ ON \S+ USING btree /, ` ON ${TABLE} `).replaceAll('::text', '');
}

/** Apart from white space, parentheses and the case outside literals two texts of one definition are equal. */
function comparable(definition: string): string {
  return definition
    .replace(/'(?:[^']|'')*'|[\s()"]+|[A-Z]+/g, (part) =>
      part.startsWith("'") ? part : /^[A-Z]/.test(part) ? part.toLowerCase() : ' ',
    )
    .replace(/\s+/g, ' ')
    .replaceAll(/\s?(,|::|->>)\s?/g, '$1')
    .trim();
}
