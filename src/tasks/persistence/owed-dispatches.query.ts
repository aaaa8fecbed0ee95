import type { SqlExecutor } from '../../persistence/unit-of-work.js';
import { isDispatchOpen } from './dispatches.repository.js';

/** How many turns are still to be sent to their agent's webhook. By the index of just those. */
export async function countOwedDispatches(sql: SqlExecutor): Promise<number> {
  const { rows } = await sql.query<{ owed: number }>(
    `SELECT COUNT(*) AS owed FROM task_session_turns WHERE ${isDispatchOpen('')}`,
  );
  return rows[0]?.owed ?? 0;
}
