import { Deadline } from '../../src/common/deadline.js';
import type { TestDatabase } from './engines.js';

const TABLES = [
  'users',
  'access_tokens',
  'workspaces',
  'tasks',
  'task_sessions',
  'task_session_turns',
  'task_session_messages',
] as const;

/** Every row of the product's tables, to compare before and after. When a token was last used is left out. */
export async function dumpOf(database: TestDatabase): Promise<Readonly<Record<string, readonly unknown[]>>> {
  const dump: Record<string, readonly unknown[]> = {};
  for (const table of TABLES) {
    const { rows } = await database.reader.query(Deadline.after(20_000), `SELECT * FROM ${table} ORDER BY id`);
    dump[table] = rows.map(({ last_used_at: _, ...row }) => row);
  }
  return dump;
}
