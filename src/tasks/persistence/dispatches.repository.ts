import type { Instant } from '../../common/clock.js';
import type { Dialect } from '../../persistence/dialect.js';
import type { SqlExecutor } from '../../persistence/unit-of-work.js';
import type { SessionState } from '../domain/session-state.js';

/**
 * A turn whose prompt is still to be sent to its agent. `owed`: it has been handed over otherwise, to the mailbox or the
 * queue. `unconfirmed`: it carries an answer that was sent without a reply, so nobody knows yet whether it is delivered.
 */
export interface DispatchRow {
  readonly id: string;
  readonly task_session_id: string;
  readonly dispatch_body: string | null;
  readonly dispatch_attempts: number;
  readonly dispatch_since: Instant | null;
  readonly resume: string;
  readonly state: SessionState;
}

/** The condition of the small index over them; `turn` is an alias of task_session_turns, or empty. */
export const isDispatchOpen = (turn: string): string => `${turn}dispatch IN ('owed', 'unconfirmed')`;

/** Whether the session has a turn with this bundle's answer of which nobody knows yet whether its agent has it. */
export function isAnswerUnconfirmed(dialect: Dialect, sessionId: string, pendingId: string): string {
  return `EXISTS (SELECT 1 FROM task_session_turns ut WHERE ut.task_session_id = ${sessionId}
    AND ut.dispatch = 'unconfirmed'
    AND ${dialect.metadataText('ut.metadata', 'resumed_from_pending_id')} = ${pendingId}${dialect.rowByRow})`;
}

export async function oweDispatch(
  sql: SqlExecutor,
  turnId: string,
  owed: {
    readonly kind: 'owed' | 'unconfirmed';
    readonly body: string;
    readonly attempts: number;
    readonly since: Instant;
    readonly nextAt: Instant;
  },
): Promise<void> {
  await sql.query(
    `UPDATE task_session_turns SET dispatch = $2, dispatch_body = $3, dispatch_attempts = $4, dispatch_since = $5,
       dispatch_next_at = $6 WHERE id = $1`,
    [turnId, owed.kind, owed.body, owed.attempts, owed.since, owed.nextAt],
  );
}

/** Those whose time has come, the longest due first; of each session the oldest, so that prompts arrive in order. */
export async function listDueDispatches(
  sql: SqlExecutor,
  now: Instant,
  limit: number,
): Promise<readonly DispatchRow[]> {
  const { rows } = await sql.query<DispatchRow>(
    `SELECT t.id, t.task_session_id, t.dispatch_body, t.dispatch_attempts, t.dispatch_since, s.resume, s.state
     FROM task_session_turns t JOIN task_sessions s ON s.id = t.task_session_id
     WHERE ${isDispatchOpen('t.')} AND t.dispatch_next_at <= $1
       AND NOT EXISTS (SELECT 1 FROM task_session_turns o WHERE o.task_session_id = t.task_session_id
         AND ${isDispatchOpen('o.')} AND o.dispatch_next_at <= $1 AND (o.started_at, o.id) < (t.started_at, t.id))
     ORDER BY t.dispatch_next_at, t.id LIMIT ${Number(limit)}`,
    [now],
  );
  return rows;
}

/** When the next of them is due; undefined when none is left. */
export async function findNextDispatchAt(sql: SqlExecutor, after: Instant): Promise<Instant | undefined> {
  const { rows } = await sql.query<{ dispatch_next_at: Instant }>(
    `SELECT t.dispatch_next_at FROM task_session_turns t WHERE ${isDispatchOpen('t.')} AND t.dispatch_next_at > $1
     ORDER BY t.dispatch_next_at, t.id LIMIT 1`,
    [after],
  );
  return rows[0]?.dispatch_next_at;
}

/** Its address has changed: what is owed is sent there without further waiting. */
export async function hastenDispatches(sql: SqlExecutor, sessionId: string, now: Instant): Promise<void> {
  await sql.query(
    `UPDATE task_session_turns SET dispatch_next_at = $2
     WHERE task_session_id = $1 AND ${isDispatchOpen('')} AND dispatch_next_at > $2`,
    [sessionId, now],
  );
}

/** The agent has it: it need not fetch it, and it is not sent again. @returns false when that was so already */
export async function settleDispatch(sql: SqlExecutor, turnId: string, now: Instant): Promise<boolean> {
  const { affected } = await sql.query(
    `UPDATE task_session_turns SET dispatch = 'settled', dispatch_body = NULL, updated_at = $2,
       mailbox = CASE mailbox WHEN 'waiting' THEN 'acknowledged' ELSE mailbox END
     WHERE id = $1 AND ${isDispatchOpen('')}`,
    [turnId, now],
  );
  return affected === 1;
}

export async function postponeDispatch(sql: SqlExecutor, turnId: string, nextAt: Instant): Promise<void> {
  await sql.query(
    `UPDATE task_session_turns SET dispatch_attempts = dispatch_attempts + 1, dispatch_next_at = $2
     WHERE id = $1 AND ${isDispatchOpen('')}`,
    [turnId, nextAt],
  );
}

/** Not sent any more; it stays in the mailbox. @returns false when it was settled meanwhile */
export async function abandonDispatch(sql: SqlExecutor, turnId: string): Promise<boolean> {
  const { affected } = await sql.query(
    `UPDATE task_session_turns SET dispatch = 'given_up', dispatch_body = NULL WHERE id = $1 AND ${isDispatchOpen('')}`,
    [turnId],
  );
  return affected === 1;
}
