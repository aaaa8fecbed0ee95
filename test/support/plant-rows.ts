import type { Instant } from '../../src/common/clock.js';
import type { SqlValue } from '../../src/persistence/unit-of-work.js';
import type { TestDatabase } from './engines.js';

/** Rows as a foreign hand writes them, past everything that the product checks. */
export interface PlantedRows {
  readonly workspaces: readonly { readonly id: string; readonly ownerId: string }[];
  readonly tasks: readonly { readonly id: string; readonly workspaceId: string }[];
  readonly sessions: readonly {
    readonly id: string;
    readonly taskId: string;
    readonly state: string;
    readonly isPrimary?: boolean;
  }[];
  readonly turns: readonly PlantedTurn[];
  readonly messages: readonly PlantedMessage[];
}

export interface PlantedTurn {
  readonly id: string;
  readonly sessionId: string;
  readonly startedAt: Instant;
  /** JSON text. */
  readonly metadata?: string;
}

export interface PlantedMessage {
  readonly id: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly taskId: string | null;
  readonly type: string;
  /** JSON text. */
  readonly metadata: string;
  readonly createdAt: Instant;
  readonly bundleCreatedAt: Instant | null;
}

export const PLANTED_AT: Instant = '2026-01-01T00:00:00.000Z';

/** The rows of a world: one statement a table, none for a table without rows. */
export async function plantRows(database: TestDatabase, rows: Partial<PlantedRows>): Promise<void> {
  const at = { created_at: PLANTED_AT, updated_at: PLANTED_AT };
  await insert(
    database,
    'workspaces',
    (rows.workspaces ?? []).map(({ id, ownerId }) => ({ id, name: id, owner_id: ownerId, ...at })),
  );
  await insert(
    database,
    'tasks',
    (rows.tasks ?? []).map(({ id, workspaceId }) => ({ id, workspace_id: workspaceId, title: id, ...at })),
  );
  await insert(
    database,
    'task_sessions',
    (rows.sessions ?? []).map(({ id, taskId, state, isPrimary }) => ({
      id,
      task_id: taskId,
      state,
      is_primary: isPrimary === true ? 1 : 0,
      started_at: PLANTED_AT,
      updated_at: PLANTED_AT,
    })),
  );
  const tasks = new Map((rows.sessions ?? []).map(({ id, taskId }) => [id, taskId]));
  await insert(
    database,
    'task_session_turns',
    (rows.turns ?? []).map(({ id, sessionId, startedAt, metadata }) => ({
      id,
      task_session_id: sessionId,
      task_id: tasks.get(sessionId) ?? '',
      started_at: startedAt,
      metadata: metadata ?? '{}',
      ...at,
    })),
  );
  await insert(database, 'task_session_messages', (rows.messages ?? []).map(messageColumns));
}

function messageColumns(message: PlantedMessage): Readonly<Record<string, SqlValue>> {
  return {
    id: message.id,
    task_session_id: message.sessionId,
    turn_id: message.turnId,
    task_id: message.taskId,
    author_type: 'agent',
    type: message.type,
    metadata: message.metadata,
    bundle_created_at: message.bundleCreatedAt,
    created_at: message.createdAt,
    updated_at: message.createdAt,
  };
}

async function insert(
  database: TestDatabase,
  table: string,
  rows: readonly Readonly<Record<string, SqlValue>>[],
): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const columns = Object.keys(first);
  const params: SqlValue[] = [];
  const values = rows.map((row) => `(${columns.map((column) => `$${params.push(row[column] ?? null)}`).join(', ')})`);
  await database.sql(`INSERT INTO ${table} (${columns.join(', ')}) VALUES ${values.join(', ')}`, params);
}
