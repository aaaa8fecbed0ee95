import type { Instant } from '../../common/clock.js';
import type { Caller } from '../../identity/caller.js';
import type { SqlExecutor, SqlValue } from '../../persistence/unit-of-work.js';
import { isVisibleTask } from './visible-tasks.predicate.js';

export type TaskState = 'open' | 'completed' | 'cancelled';

export interface TaskRow {
  readonly id: string;
  readonly workspace_id: string;
  readonly title: string;
  readonly description: string;
  readonly state: TaskState;
  readonly created_at: Instant;
  readonly updated_at: Instant;
}

export interface TaskPageFilter {
  readonly workspaceId?: string;
  readonly after?: { readonly createdAt: Instant; readonly id: string };
  readonly limit: number;
}

const COLUMNS = 't.id, t.workspace_id, t.title, t.description, t.state, t.created_at, t.updated_at';

export async function insertTask(sql: SqlExecutor, row: TaskRow): Promise<void> {
  await sql.query(
    `INSERT INTO tasks (id, workspace_id, title, description, state, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [row.id, row.workspace_id, row.title, row.description, row.state, row.created_at, row.updated_at],
  );
}

/** The task if it exists and the access rule lets the caller see it. */
export async function findVisibleTask(sql: SqlExecutor, caller: Caller, id: string): Promise<TaskRow | undefined> {
  const visible = isVisibleTask(caller, 't', 2);
  const { rows } = await sql.query<TaskRow>(`SELECT ${COLUMNS} FROM tasks t WHERE t.id = $1 AND ${visible.sql}`, [
    id,
    ...visible.params,
  ]);
  return rows[0];
}

/**
 * A page of visible tasks by (created_at, id), and one more when there is a next page. A workspace only narrows (L7):
 * an existing one that the caller cannot see gives nothing, a dangling one gives its tasks.
 */
export async function listVisibleTasks(
  sql: SqlExecutor,
  caller: Caller,
  filter: TaskPageFilter,
): Promise<readonly TaskRow[]> {
  const params: SqlValue[] = [];
  const conditions: string[] = [];
  const visible = isVisibleTask(caller, 't', 1);
  conditions.push(visible.sql);
  params.push(...visible.params);
  if (filter.workspaceId !== undefined) {
    params.push(filter.workspaceId);
    conditions.push(`t.workspace_id = $${params.length}`);
  }
  if (filter.after !== undefined) {
    params.push(filter.after.createdAt, filter.after.id);
    conditions.push(`(t.created_at, t.id) > ($${params.length - 1}, $${params.length})`);
  }
  params.push(filter.limit + 1);
  const { rows } = await sql.query<TaskRow>(
    `SELECT ${COLUMNS} FROM tasks t WHERE ${conditions.join(' AND ')}
     ORDER BY t.created_at, t.id LIMIT $${params.length}`,
    params,
  );
  return rows;
}

export async function lockTask(sql: SqlExecutor, id: string): Promise<TaskRow | undefined> {
  const { rows } = await sql.query<TaskRow>(`SELECT ${COLUMNS} FROM tasks t WHERE t.id = $1${sql.dialect.lockRows}`, [
    id,
  ]);
  return rows[0];
}

export async function setTaskState(sql: SqlExecutor, id: string, state: TaskState, now: Instant): Promise<void> {
  await sql.query('UPDATE tasks SET state = $2, updated_at = $3 WHERE id = $1', [id, state, now]);
}

export async function deleteTask(sql: SqlExecutor, id: string): Promise<void> {
  await sql.query('DELETE FROM tasks WHERE id = $1', [id]);
}
