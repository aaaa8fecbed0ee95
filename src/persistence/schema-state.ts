import { MIGRATIONS } from '../../migrations/index.js';
import type { Deadline } from '../common/deadline.js';
import type { Engine } from './dialect.js';
import type { Reader } from './unit-of-work.js';

/** How the schema found compares with the one this program was made for; `missing`: an empty database. */
export type SchemaState = 'missing' | 'older' | 'current' | 'newer';

const FIND_TABLE: Record<Engine, string> = {
  sqlite: `SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'migrations'`,
  postgres: `SELECT relname AS name FROM pg_catalog.pg_class WHERE oid = to_regclass('migrations')`,
};

/** Changes nothing: for whoever works beside a server and must not migrate under it. */
export async function readSchemaState(reader: Reader, deadline: Deadline): Promise<SchemaState> {
  const table = await reader.query(deadline, FIND_TABLE[reader.dialect.engine]);
  if (table.rows.length === 0) return 'missing';
  const { rows } = await reader.query<{ name: string }>(deadline, 'SELECT name FROM migrations');
  const done = new Set(rows.map((row) => row.name));
  if (done.size === 0) return 'missing';
  const known: string[] = MIGRATIONS.map((Migration) => new Migration().name);
  if ([...done].some((name) => !known.includes(name))) return 'newer';
  return known.every((name) => done.has(name)) ? 'current' : 'older';
}
