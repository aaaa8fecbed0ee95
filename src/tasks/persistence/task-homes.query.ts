import type { SqlExecutor } from '../../persistence/unit-of-work.js';
import type { TaskHome } from './visible-tasks.predicate.js';

interface HomeRow {
  readonly id: string;
  readonly workspace_id: string;
  readonly owner_id: string | null;
}

/** By task id: where these tasks, and those of these sessions, are. What does not exist is missing. One statement. */
export async function findTaskHomes(
  sql: SqlExecutor,
  taskIds: readonly string[],
  sessionIds: readonly string[],
): Promise<ReadonlyMap<string, TaskHome>> {
  const { rows } = await sql.query<HomeRow & Record<string, string | null>>(
    `SELECT t.id, t.workspace_id, w.owner_id FROM tasks t LEFT JOIN workspaces w ON w.id = t.workspace_id
     WHERE t.id IN (
       SELECT s.task_id FROM task_sessions s WHERE s.id IN ${sql.dialect.boundTexts('$1')}
       UNION SELECT * FROM ${sql.dialect.boundTexts('$2')} AS named)`,
    [JSON.stringify(sessionIds), JSON.stringify(taskIds)],
  );
  return new Map(rows.map((row) => [row.id, { workspaceId: row.workspace_id, ownerId: row.owner_id }]));
}
