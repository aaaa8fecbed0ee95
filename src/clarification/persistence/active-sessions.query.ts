import type { Dialect } from '../../persistence/dialect.js';
import type { SqlExecutor } from '../../persistence/unit-of-work.js';
import type { WaitingSession } from '../../tasks/clarification.port.js';
import { isReservation } from '../../tasks/persistence/current-turn.predicate.js';
import { isActiveBundleRow, isOfCurrentTurn, isOwedRow, pendingIdOf } from './active-bundle.predicate.js';

/**
 * A question of the session's current turn is open, or its answer is on its way: rows of it, as SQL. `$1` is the session,
 * `$2` a bundle that does not count.
 */
function openQuestions(dialect: Dialect): string {
  return `SELECT m.id FROM task_session_messages m
      WHERE ${isOfCurrentTurn(dialect, 'm', '$1')} AND ${isActiveBundleRow(dialect, 'm')}
    UNION ALL
    SELECT m.id FROM task_session_messages m WHERE m.task_session_id = $1 AND ${isOwedRow(dialect, 'm')}
      AND ${pendingIdOf(dialect, 'm')} <> $2`;
}

/** @param answered a bundle that is being handed over and does not count itself */
export async function hasOpenQuestion(sql: SqlExecutor, sessionId: string, answered: string): Promise<boolean> {
  return hasAny(sql, openQuestions(sql.dialect), sessionId, answered);
}

/**
 * Whether a prompt would come between the session's agent and a question: one of the current turn is open, or its answer
 * on its way would find a newer turn in its place, or has a turn reserved for it.
 *
 * @param answered a bundle whose own answer is the prompt
 */
export async function holdsBackPrompts(sql: SqlExecutor, sessionId: string, answered = ''): Promise<boolean> {
  const reserved = `SELECT t.id FROM task_session_turns t
    WHERE t.task_session_id = $1 AND ${isReservation(sql.dialect, 't')}`;
  return hasAny(sql, `${openQuestions(sql.dialect)} UNION ALL ${reserved}`, sessionId, answered);
}

async function hasAny(sql: SqlExecutor, select: string, sessionId: string, answered: string): Promise<boolean> {
  const { rows } = await sql.query(`${select} LIMIT 1`, [sessionId, answered]);
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
         WHERE ${isOfCurrentTurn(sql.dialect, 'm', 's.id')} AND ${isActiveBundleRow(sql.dialect, 'm')}${sql.dialect.rowByRow})`,
    taskIds,
  );
  return rows;
}
