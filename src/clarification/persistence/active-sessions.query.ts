import type { SqlExecutor } from '../../persistence/unit-of-work.js';
import type { WaitingSession } from '../../tasks/clarification.port.js';
import { isActiveBundleRow, isOwedRow } from './active-bundle.predicate.js';

/**
 * Whether a prompt would come between the session's agent and a question: one of the current turn is active, or its
 * answer is on its way and would find a newer turn in its place.
 */
export async function holdsBackPrompts(sql: SqlExecutor, sessionId: string): Promise<boolean> {
  const { dialect } = sql;
  const { rows } = await sql.query(
    `SELECT m.id FROM task_session_messages m WHERE m.task_session_id = $1 AND ${isActiveBundleRow(dialect, 'm')}
     UNION ALL
     SELECT m.id FROM task_session_messages m WHERE m.task_session_id = $1 AND ${isOwedRow(dialect, 'm')}
     LIMIT 1`,
    [sessionId],
  );
  return rows.length > 0;
}

/** One statement, however many tasks. */
export async function sessionsWithActiveBundle(
  sql: SqlExecutor,
  taskIds: readonly string[],
): Promise<readonly WaitingSession[]> {
  if (taskIds.length === 0) return [];
  const { rows } = await sql.query<WaitingSession & Record<string, string | number>>(
    `SELECT s.id AS session_id, s.task_id, s.is_primary FROM task_sessions s
     WHERE s.task_id IN (${taskIds.map((_, index) => `$${index + 1}`).join(', ')})
       AND EXISTS (SELECT 1 FROM task_session_messages m
         WHERE m.task_session_id = s.id AND ${isActiveBundleRow(sql.dialect, 'm')}${sql.dialect.rowByRow})`,
    taskIds,
  );
  return rows;
}
