import type { Instant } from '../../common/clock.js';
import type { Caller } from '../../identity/caller.js';
import type { SqlExecutor } from '../../persistence/unit-of-work.js';
import { isVisibleWorkspace } from './visible-tasks.predicate.js';

export interface WorkspaceRow {
  readonly id: string;
  readonly name: string;
  readonly owner_id: string;
  readonly created_at: Instant;
  readonly updated_at: Instant;
}

const COLUMNS = 'w.id, w.name, w.owner_id, w.created_at, w.updated_at';

export async function insertWorkspace(sql: SqlExecutor, row: WorkspaceRow): Promise<void> {
  await sql.query('INSERT INTO workspaces (id, name, owner_id, created_at, updated_at) VALUES ($1, $2, $3, $4, $5)', [
    row.id,
    row.name,
    row.owner_id,
    row.created_at,
    row.updated_at,
  ]);
}

export async function listVisibleWorkspaces(sql: SqlExecutor, caller: Caller): Promise<readonly WorkspaceRow[]> {
  const visible = isVisibleWorkspace(caller, 'w', 1);
  const { rows } = await sql.query<WorkspaceRow>(
    `SELECT ${COLUMNS} FROM workspaces w WHERE ${visible.sql} ORDER BY w.created_at, w.id`,
    visible.params,
  );
  return rows;
}

export async function findVisibleWorkspace(
  sql: SqlExecutor,
  caller: Caller,
  id: string,
): Promise<WorkspaceRow | undefined> {
  const visible = isVisibleWorkspace(caller, 'w', 2);
  const { rows } = await sql.query<WorkspaceRow>(
    `SELECT ${COLUMNS} FROM workspaces w WHERE w.id = $1 AND ${visible.sql}`,
    [id, ...visible.params],
  );
  return rows[0];
}
