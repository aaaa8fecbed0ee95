import type { SqlExecutor } from '../../persistence/unit-of-work.js';
import { isActiveBundleRow, pendingIdOf } from './active-bundle.predicate.js';

/** How many bundles are active, whoever may see them. Its cost grows with the pending rows, superseded ones included. */
export async function countActiveBundles(sql: SqlExecutor): Promise<number> {
  const { rows } = await sql.query<{ active: number }>(
    `SELECT COUNT(DISTINCT ${pendingIdOf(sql.dialect, 'm')}) AS active FROM task_session_messages m
     WHERE ${isActiveBundleRow(sql.dialect, 'm')}`,
  );
  return rows[0]?.active ?? 0;
}
