import type { Instant } from '../../common/clock.js';
import type { SqlExecutor, SqlValue } from '../../persistence/unit-of-work.js';
import { isReservation } from './current-turn.predicate.js';

/** A turn with its private metadata, as strict JSON text. */
export interface ReservedTurnRow {
  readonly id: string;
  readonly task_session_id: string;
  readonly task_id: string;
  readonly started_at: Instant;
  readonly completed_at: Instant | null;
  readonly created_at: Instant;
  readonly metadata: string;
  readonly dispatch_body: string | null;
  readonly is_attempted: number;
  /** The agent, or somebody, has written into it already: it cannot be taken back. */
  readonly has_messages: number;
}

/** Never attempted, and nothing written into it: its agent cannot know of it, and it is no current turn. */
export function isPureReservation(turn: ReservedTurnRow): boolean {
  return turn.is_attempted === 0 && turn.has_messages === 0;
}

function select(sql: SqlExecutor, condition: string): string {
  const { dialect } = sql;
  return `SELECT t.id, t.task_session_id, t.task_id, t.started_at, t.completed_at, t.created_at, t.dispatch_body,
      ${dialect.metadataDocument('t.metadata')} AS metadata,
      CASE WHEN ${dialect.metadataFlag('t.metadata', 'prompt_dispatch_attempted')} THEN 1 ELSE 0 END AS is_attempted,
      CASE WHEN EXISTS (SELECT 1 FROM task_session_messages rm WHERE rm.turn_id = t.id) THEN 1 ELSE 0 END AS has_messages
    FROM task_session_turns t WHERE ${condition} ORDER BY t.started_at, t.created_at, t.id`;
}

async function find(sql: SqlExecutor, condition: string, params: readonly SqlValue[] = []) {
  return (await sql.query<ReservedTurnRow>(select(sql, condition), params)).rows;
}

/** The turn, if it is still reserved. */
export async function findReservation(
  sql: SqlExecutor,
  sessionId: string,
  turnId: string,
): Promise<ReservedTurnRow | undefined> {
  const isThis = `t.id = $2 AND t.task_session_id = $1 AND ${isReservation(sql.dialect, 't')}`;
  return (await find(sql, isThis, [sessionId, turnId]))[0];
}

/** Of every session, from the small index over them. */
export function listReservations(sql: SqlExecutor): Promise<readonly ReservedTurnRow[]> {
  return find(sql, isReservation(sql.dialect, 't'));
}

/** Turns that recovery has published and whose events are still to be sent. */
export function listUnannouncedTurns(sql: SqlExecutor): Promise<readonly ReservedTurnRow[]> {
  return find(sql, sql.dialect.metadataFlag('t.metadata', 'prompt_dispatch_start_event_pending'));
}

export async function hasReservation(sql: SqlExecutor, sessionId: string): Promise<boolean> {
  const { rows } = await sql.query(
    `SELECT t.id FROM task_session_turns t WHERE t.task_session_id = $1 AND ${isReservation(sql.dialect, 't')} LIMIT 1`,
    [sessionId],
  );
  return rows.length > 0;
}

/** The same bytes are sent each time: they are kept from before the first. */
export async function recordAttempt(
  sql: SqlExecutor,
  id: string,
  metadata: string,
  body: string,
  now: Instant,
): Promise<void> {
  await sql.query('UPDATE task_session_turns SET metadata = $2, dispatch_body = $3, updated_at = $4 WHERE id = $1', [
    id,
    metadata,
    body,
    now,
  ]);
}

export async function publishReservation(
  sql: SqlExecutor,
  id: string,
  published: {
    readonly metadata: string;
    readonly mailbox: 'waiting' | 'acknowledged';
    readonly dispatch: '' | 'settled';
    readonly now: Instant;
  },
): Promise<void> {
  await sql.query(
    `UPDATE task_session_turns SET metadata = $2, mailbox = $3, dispatch = $4, dispatch_body = NULL, updated_at = $5
     WHERE id = $1`,
    [id, published.metadata, published.mailbox, published.dispatch, published.now],
  );
}

export async function setTurnMetadata(sql: SqlExecutor, id: string, metadata: string, now: Instant): Promise<void> {
  await sql.query('UPDATE task_session_turns SET metadata = $2, updated_at = $3 WHERE id = $1', [id, metadata, now]);
}

export async function deleteTurn(sql: SqlExecutor, id: string): Promise<void> {
  await sql.query('DELETE FROM task_session_turns WHERE id = $1', [id]);
}
