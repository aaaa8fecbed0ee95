import type { Instant } from '../../common/clock.js';
import type { SqlExecutor } from '../../persistence/unit-of-work.js';
import { currentTurnId, isAuthoritativeTurn, isReservation } from './current-turn.predicate.js';

export interface TurnRow {
  readonly id: string;
  readonly task_session_id: string;
  readonly task_id: string;
  readonly started_at: Instant;
  readonly completed_at: Instant | null;
  readonly mailbox: '' | 'waiting' | 'acknowledged';
  readonly created_at: Instant;
  readonly updated_at: Instant;
}

const COLUMNS =
  't.id, t.task_session_id, t.task_id, t.started_at, t.completed_at, t.mailbox, t.created_at, t.updated_at';

export async function insertTurn(sql: SqlExecutor, row: TurnRow, metadata: string): Promise<void> {
  await sql.query(
    `INSERT INTO task_session_turns
       (id, task_session_id, task_id, started_at, completed_at, mailbox, created_at, updated_at, metadata)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      row.id,
      row.task_session_id,
      row.task_id,
      row.started_at,
      row.completed_at,
      row.mailbox,
      row.created_at,
      row.updated_at,
      metadata,
    ],
  );
}

/** The newest turn of any kind: the next one must start after it. */
export async function findNewestTurn(sql: SqlExecutor, sessionId: string): Promise<TurnRow | undefined> {
  const { rows } = await sql.query<TurnRow>(
    `SELECT ${COLUMNS} FROM task_session_turns t WHERE t.task_session_id = $1
     ORDER BY t.started_at DESC, t.created_at DESC, t.id DESC LIMIT 1`,
    [sessionId],
  );
  return rows[0];
}

/** The newest turn that is shown. A prompt that has to wait hangs on it: on a reservation it would be in its way. */
export async function findNewestPublishedTurn(sql: SqlExecutor, sessionId: string): Promise<TurnRow | undefined> {
  const { rows } = await sql.query<TurnRow>(
    `SELECT ${COLUMNS} FROM task_session_turns t
     WHERE t.task_session_id = $1 AND NOT ${isReservation(sql.dialect, 't')}
     ORDER BY t.started_at DESC, t.created_at DESC, t.id DESC LIMIT 1`,
    [sessionId],
  );
  return rows[0];
}

export async function findCurrentTurn(sql: SqlExecutor, sessionId: string): Promise<TurnRow | undefined> {
  const { rows } = await sql.query<TurnRow>(
    `SELECT ${COLUMNS} FROM task_session_turns t WHERE t.id = ${currentTurnId(sql.dialect, '$1')}`,
    [sessionId],
  );
  return rows[0];
}

export async function findTurn(sql: SqlExecutor, sessionId: string, id: string): Promise<TurnRow | undefined> {
  const { rows } = await sql.query<TurnRow>(
    `SELECT ${COLUMNS} FROM task_session_turns t
     WHERE t.id = $2 AND t.task_session_id = $1 AND ${isAuthoritativeTurn(sql.dialect, 't')}`,
    [sessionId, id],
  );
  return rows[0];
}

/** Oldest first; turns that are reserved and not published yet are hidden. */
export async function listTurns(sql: SqlExecutor, sessionId: string): Promise<readonly TurnRow[]> {
  const { rows } = await sql.query<TurnRow>(
    `SELECT ${COLUMNS} FROM task_session_turns t
     WHERE t.task_session_id = $1 AND NOT ${isReservation(sql.dialect, 't')}
     ORDER BY t.started_at, t.created_at, t.id`,
    [sessionId],
  );
  return rows;
}

/**
 * @param successor the turn that takes their place, when it is there already
 * @returns the ids of the turns that were still running
 */
export async function completeRunningTurns(
  sql: SqlExecutor,
  sessionId: string,
  now: Instant,
  successor = '',
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>(
    `UPDATE task_session_turns SET completed_at = $2, updated_at = $2
     WHERE task_session_id = $1 AND completed_at IS NULL AND id <> $3 RETURNING id`,
    [sessionId, now, successor],
  );
  return rows.map((row) => row.id);
}

/** @returns undefined when it was not running; whether anybody can see it otherwise */
export async function completeTurn(
  sql: SqlExecutor,
  id: string,
  now: Instant,
): Promise<{ readonly isPublished: boolean } | undefined> {
  const { rows } = await sql.query<{ is_reserved: number }>(
    `UPDATE task_session_turns SET completed_at = $2, updated_at = $2 WHERE id = $1 AND completed_at IS NULL
     RETURNING CASE WHEN ${isReservation(sql.dialect, 'task_session_turns')} THEN 1 ELSE 0 END AS is_reserved`,
    [id, now],
  );
  return rows[0] && { isPublished: rows[0].is_reserved === 0 };
}

export interface MailboxEntry {
  readonly turn: TurnRow;
  readonly prompt: string;
}

/** The oldest turn that a pull-mode agent has not acknowledged, with its first user message. */
export async function findMailboxEntry(sql: SqlExecutor, sessionId: string): Promise<MailboxEntry | undefined> {
  const { rows } = await sql.query<TurnRow & { prompt: string | null }>(
    `SELECT ${COLUMNS}, (SELECT m.content FROM task_session_messages m
        WHERE m.turn_id = t.id AND m.author_type = 'user' AND m.type = 'message' AND m.queued_at IS NULL
        ORDER BY m.created_at, m.id LIMIT 1) AS prompt
     FROM task_session_turns t WHERE t.task_session_id = $1 AND t.mailbox = 'waiting'
     ORDER BY t.started_at, t.created_at, t.id LIMIT 1`,
    [sessionId],
  );
  const row = rows[0];
  if (row === undefined) return undefined;
  const { prompt, ...turn } = row;
  return { turn, prompt: prompt ?? '' };
}

/**
 * The agent has the turn's prompt now, and nothing need be sent to it any more. Idempotent: acknowledging again changes
 * nothing.
 * @returns whether the turn ever was in the mailbox
 */
export async function acknowledgeMailbox(
  sql: SqlExecutor,
  sessionId: string,
  turnId: string,
  now: Instant,
): Promise<boolean> {
  const { affected } = await sql.query(
    `UPDATE task_session_turns SET updated_at = CASE mailbox WHEN 'waiting' THEN $3 ELSE updated_at END,
       mailbox = 'acknowledged', dispatch_body = NULL,
       dispatch = CASE WHEN dispatch IN ('owed', 'unconfirmed') THEN 'settled' ELSE dispatch END
     WHERE id = $2 AND task_session_id = $1 AND mailbox <> ''`,
    [sessionId, turnId, now],
  );
  return affected === 1;
}

/** The turn that already carries the answer of a bundle to its agent, if there is one. */
export async function findTurnResumedFrom(
  sql: SqlExecutor,
  sessionId: string,
  pendingId: string,
): Promise<TurnRow | undefined> {
  const { rows } = await sql.query<TurnRow>(
    `SELECT ${COLUMNS} FROM task_session_turns t WHERE t.task_session_id = $1
       AND ${sql.dialect.metadataText('t.metadata', 'resumed_from_pending_id')} = $2
     ORDER BY t.started_at DESC, t.created_at DESC, t.id DESC LIMIT 1`,
    [sessionId, pendingId],
  );
  return rows[0];
}
