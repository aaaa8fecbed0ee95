import type { Instant } from '../../common/clock.js';
import type { SqlExecutor, SqlValue } from '../../persistence/unit-of-work.js';

import { isSessionOpen } from './terminal-session.predicate.js';

export type AuthorType = 'user' | 'agent' | 'system';

/** Type `message` rows; questions are written and read by the clarification feature. */
export interface MessageRow {
  readonly id: string;
  readonly task_session_id: string;
  readonly task_id: string;
  readonly turn_id: string;
  readonly author_type: AuthorType;
  readonly author_id: string;
  readonly content: string;
  readonly requests_input: number;
  readonly type: string;
  readonly client_message_id: string | null;
  readonly queued_at: Instant | null;
  readonly metadata: string;
  readonly created_at: Instant;
  readonly updated_at: Instant;
}

function columns(sql: SqlExecutor): string {
  return `m.id, m.task_session_id, COALESCE(m.task_id, '') AS task_id, m.turn_id, m.author_type, m.author_id, m.content,
    m.requests_input, m.type, m.client_message_id, m.queued_at, ${sql.dialect.metadataDocument('m.metadata')} AS metadata,
    m.created_at, m.updated_at`;
}

export async function insertMessage(sql: SqlExecutor, row: MessageRow): Promise<void> {
  await sql.query(
    `INSERT INTO task_session_messages
       (id, task_session_id, task_id, turn_id, author_type, author_id, content, requests_input, type,
        client_message_id, queued_at, metadata, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    [
      row.id,
      row.task_session_id,
      row.task_id,
      row.turn_id,
      row.author_type,
      row.author_id,
      row.content,
      row.requests_input,
      row.type,
      row.client_message_id,
      row.queued_at,
      row.metadata,
      row.created_at,
      row.updated_at,
    ],
  );
}

export async function findByClientMessageId(
  sql: SqlExecutor,
  sessionId: string,
  clientMessageId: string,
): Promise<MessageRow | undefined> {
  const { rows } = await sql.query<MessageRow>(
    `SELECT ${columns(sql)} FROM task_session_messages m
     WHERE m.task_session_id = $1 AND m.client_message_id = $2`,
    [sessionId, clientMessageId],
  );
  return rows[0];
}

/**
 * The prompt that waits longest, if any.
 * @param answersOf only the answers to questions of this turn
 */
export async function findFirstQueued(
  sql: SqlExecutor,
  sessionId: string,
  answersOf?: string,
): Promise<MessageRow | undefined> {
  const params: SqlValue[] = [sessionId];
  if (answersOf !== undefined) params.push(answersOf);
  const only =
    answersOf === undefined
      ? ''
      : `AND m.turn_id = $2 AND ${sql.dialect.metadataText('m.metadata', 'resumed_from_pending_id')} IS NOT NULL`;
  const { rows } = await sql.query<MessageRow>(
    `SELECT ${columns(sql)} FROM task_session_messages m
     WHERE m.task_session_id = $1 AND m.queued_at IS NOT NULL ${only} ORDER BY m.queued_at, m.id LIMIT 1`,
    params,
  );
  return rows[0];
}

/** When the newest prompt in the queue was put there; undefined when the queue is empty. */
export async function findLastQueuedAt(sql: SqlExecutor, sessionId: string): Promise<Instant | undefined> {
  const { rows } = await sql.query<{ queued_at: Instant }>(
    `SELECT m.queued_at FROM task_session_messages m
     WHERE m.task_session_id = $1 AND m.queued_at IS NOT NULL ORDER BY m.queued_at DESC, m.id DESC LIMIT 1`,
    [sessionId],
  );
  return rows[0]?.queued_at;
}

/** Sessions that go on and have prompts in their queue. */
export async function listSessionsWithQueue(sql: SqlExecutor): Promise<readonly string[]> {
  const { rows } = await sql.query<{ task_session_id: string }>(
    `SELECT DISTINCT m.task_session_id FROM task_session_messages m
     WHERE m.queued_at IS NOT NULL AND ${isSessionOpen('m.task_session_id')}`,
  );
  return rows.map((row) => row.task_session_id);
}

/** Moves a queued prompt into the turn that it opens. */
export async function releaseMessage(sql: SqlExecutor, id: string, turnId: string, now: Instant): Promise<void> {
  await sql.query(
    'UPDATE task_session_messages SET turn_id = $2, queued_at = NULL, updated_at = $3 WHERE id = $1 AND queued_at IS NOT NULL',
    [id, turnId, now],
  );
}

export async function hasQueuedResumption(sql: SqlExecutor, sessionId: string, pendingId: string): Promise<boolean> {
  const { rows } = await sql.query(
    `SELECT id FROM task_session_messages WHERE task_session_id = $1 AND queued_at IS NOT NULL
       AND ${sql.dialect.metadataText('metadata', 'resumed_from_pending_id')} = $2`,
    [sessionId, pendingId],
  );
  return rows.length > 0;
}

/** Takes the prompt with a bundle's answer off the queue; it stays in the transcript. */
export async function unqueueResumption(
  sql: SqlExecutor,
  sessionId: string,
  pendingId: string,
  now: Instant,
): Promise<void> {
  await sql.query(
    `UPDATE task_session_messages SET queued_at = NULL, updated_at = $3
     WHERE task_session_id = $1 AND queued_at IS NOT NULL
       AND ${sql.dialect.metadataText('metadata', 'resumed_from_pending_id')} = $2`,
    [sessionId, pendingId, now],
  );
}

export interface MessagePageFilter {
  readonly sessionId?: string;
  readonly taskId?: string;
  readonly after?: { readonly createdAt: Instant; readonly id: string };
  readonly order: 'asc' | 'desc';
  readonly limit: number;
}

/** A page of a transcript by (created_at, id), and one more when there is a next page. */
export async function listMessages(sql: SqlExecutor, filter: MessagePageFilter): Promise<readonly MessageRow[]> {
  const params: SqlValue[] = [];
  const conditions: string[] = [];
  if (filter.sessionId !== undefined) {
    params.push(filter.sessionId);
    conditions.push(`m.task_session_id = $${params.length}`);
  }
  if (filter.taskId !== undefined) {
    params.push(filter.taskId);
    conditions.push(`m.task_session_id IN (SELECT ms.id FROM task_sessions ms WHERE ms.task_id = $${params.length})`);
  }
  if (filter.after !== undefined) {
    params.push(filter.after.createdAt, filter.after.id);
    const beyond = filter.order === 'asc' ? '>' : '<';
    conditions.push(`(m.created_at, m.id) ${beyond} ($${params.length - 1}, $${params.length})`);
  }
  params.push(filter.limit + 1);
  const direction = filter.order === 'asc' ? 'ASC' : 'DESC';
  const { rows } = await sql.query<MessageRow>(
    `SELECT ${columns(sql)} FROM task_session_messages m WHERE ${conditions.join(' AND ')}
     ORDER BY m.created_at ${direction}, m.id ${direction} LIMIT $${params.length}`,
    params,
  );
  return rows;
}
