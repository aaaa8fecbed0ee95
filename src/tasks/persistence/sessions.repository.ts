import type { Instant } from '../../common/clock.js';
import type { Caller } from '../../identity/caller.js';
import type { SqlExecutor } from '../../persistence/unit-of-work.js';
import type { SessionState } from '../domain/session-state.js';
import { isVisibleTask } from './visible-tasks.predicate.js';

export interface SessionRow {
  readonly id: string;
  readonly task_id: string;
  readonly state: SessionState;
  readonly is_primary: number;
  readonly resume: string;
  readonly started_at: Instant;
  readonly completed_at: Instant | null;
  readonly updated_at: Instant;
}

const COLUMNS = 's.id, s.task_id, s.state, s.is_primary, s.resume, s.started_at, s.completed_at, s.updated_at';

export async function insertSession(sql: SqlExecutor, row: SessionRow, agentTokenHash: string): Promise<void> {
  await sql.query(
    `INSERT INTO task_sessions
       (id, task_id, state, is_primary, resume, started_at, completed_at, updated_at, agent_token_hash)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      row.id,
      row.task_id,
      row.state,
      row.is_primary,
      row.resume,
      row.started_at,
      row.completed_at,
      row.updated_at,
      agentTokenHash,
    ],
  );
}

export async function findSession(sql: SqlExecutor, id: string): Promise<SessionRow | undefined> {
  const { rows } = await sql.query<SessionRow>(`SELECT ${COLUMNS} FROM task_sessions s WHERE s.id = $1`, [id]);
  return rows[0];
}

/** The session if the caller reaches it: an agent its own, anybody else through the task's access rule. */
export async function findVisibleSession(
  sql: SqlExecutor,
  caller: Caller,
  id: string,
): Promise<SessionRow | undefined> {
  const visible =
    caller.kind === 'agent' ? { sql: 's.id = $2', params: [caller.sessionId] } : isVisibleTask(caller, 't', 2);
  const { rows } = await sql.query<SessionRow>(
    `SELECT ${COLUMNS} FROM task_sessions s JOIN tasks t ON t.id = s.task_id WHERE s.id = $1 AND ${visible.sql}`,
    [id, ...visible.params],
  );
  return rows[0];
}

/**
 * Takes the session's lock, the first of every transaction that depends on or changes its current turn or state:
 * the order everywhere is session, then turns, then messages.
 */
export async function lockSession(sql: SqlExecutor, id: string): Promise<SessionRow | undefined> {
  const { rows } = await sql.query<SessionRow>(
    `SELECT ${COLUMNS} FROM task_sessions s WHERE s.id = $1${sql.dialect.lockSession}`,
    [id],
  );
  return rows[0];
}

/** Locks every session of a task, in id order. */
export async function lockSessionsOfTask(sql: SqlExecutor, taskId: string): Promise<readonly SessionRow[]> {
  const { rows } = await sql.query<SessionRow>(
    `SELECT ${COLUMNS} FROM task_sessions s WHERE s.task_id = $1 ORDER BY s.id${sql.dialect.lockSession}`,
    [taskId],
  );
  return rows;
}

export async function listSessionsOfTask(sql: SqlExecutor, taskId: string): Promise<readonly SessionRow[]> {
  const { rows } = await sql.query<SessionRow>(
    `SELECT ${COLUMNS} FROM task_sessions s WHERE s.task_id = $1 ORDER BY s.started_at, s.id`,
    [taskId],
  );
  return rows;
}

export async function demotePrimarySession(sql: SqlExecutor, taskId: string, now: Instant): Promise<void> {
  await sql.query('UPDATE task_sessions SET is_primary = 0, updated_at = $2 WHERE task_id = $1 AND is_primary = 1', [
    taskId,
    now,
  ]);
}

export async function setAgentTokenHash(sql: SqlExecutor, id: string, hash: string, now: Instant): Promise<void> {
  await sql.query('UPDATE task_sessions SET agent_token_hash = $2, updated_at = $3 WHERE id = $1', [id, hash, now]);
}

export async function setResume(sql: SqlExecutor, id: string, resume: string, now: Instant): Promise<void> {
  await sql.query('UPDATE task_sessions SET resume = $2, updated_at = $3 WHERE id = $1', [id, resume, now]);
}

export async function setSessionState(
  sql: SqlExecutor,
  id: string,
  state: SessionState,
  completedAt: Instant | null,
  now: Instant,
): Promise<void> {
  await sql.query('UPDATE task_sessions SET state = $2, completed_at = $3, updated_at = $4 WHERE id = $1', [
    id,
    state,
    completedAt,
    now,
  ]);
}
