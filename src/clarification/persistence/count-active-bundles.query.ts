import type { SqlExecutor } from '../../persistence/unit-of-work.js';
import { isActiveBundleRow, isNotNotedSuperseded, isPendingRow, pendingIdOf } from './active-bundle.predicate.js';

/**
 * How many bundles are active, whoever may see them. Its cost grows with their number, and with little else. One pending
 * row answers for its bundle: where they differ, in session or turn, it is malformed and none is active.
 */
export async function countActiveBundles(sql: SqlExecutor): Promise<number> {
  const { dialect } = sql;
  const { rows } = await sql.query<{ active: number }>(
    `SELECT COUNT(*) AS active
     FROM (SELECT MIN(p.id) AS id FROM task_session_messages p ${dialect.byIndex('idx_messages_open_bundles')}
       WHERE ${isNotNotedSuperseded('p')} AND ${isPendingRow(dialect, 'p')} GROUP BY ${pendingIdOf(dialect, 'p')}) AS one
     ${dialect.joinRowByRow('task_session_messages', 'm', 'm.id = one.id')}
     WHERE ${isActiveBundleRow(dialect, 'm')}`,
  );
  return rows[0]?.active ?? 0;
}
