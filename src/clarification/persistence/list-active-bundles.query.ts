import type { Instant } from '../../common/clock.js';
import type { PagePosition } from '../../common/page-cursor.js';
import type { Caller } from '../../identity/caller.js';
import type { Dialect } from '../../persistence/dialect.js';
import type { SqlExecutor, SqlValue } from '../../persistence/unit-of-work.js';
import { isVisibleTask } from '../../tasks/persistence/visible-tasks.predicate.js';
import { isActiveBundleRow, isPendingRow, pendingIdOf } from './active-bundle.predicate.js';

export interface ActiveBundleFilter {
  readonly workspaceId?: string;
  readonly createdSince?: Instant;
  readonly after?: PagePosition;
  readonly limit: number;
}

export interface BundleKey {
  readonly pending_id: string;
  readonly created_at: Instant;
}

/**
 * The row's place in the walk cannot be taken from `bundle_created_at`: it was written without it, or its time was
 * changed since. The text of an index's condition.
 */
function isUnkeyedRow(dialect: Dialect, row: string): string {
  return `${row}.type = 'clarification_request' AND (${row}.bundle_created_at <> ${row}.created_at
    OR (${row}.bundle_created_at IS NULL AND COALESCE(${dialect.metadataText(`${row}.metadata`, 'status')}, '') IN ('', 'pending')))`;
}

/**
 * A page of the active bundles that a caller may see, by (created_at, pending_id), and one more when there is a next
 * page. Everything that excludes a bundle is inside the query, so that LIMIT counts what is returned.
 *
 * An ordered walk: each bundle stands for its first pending row, found in the order of `bundle_created_at` through the
 * index over pending rows alone. The product gives all rows of a bundle one time and writes it there too, so it is D1's
 * value. A bundle with a row of which that is not true is left to the second branch, which computes D1 from the rows: the
 * column speeds the walk up and decides nothing.
 */
export async function listActiveBundles(
  sql: SqlExecutor,
  caller: Caller,
  filter: ActiveBundleFilter,
): Promise<readonly BundleKey[]> {
  const { dialect } = sql;
  const params: SqlValue[] = [];
  const bind = (value: SqlValue): string => `$${params.push(value)}`;
  const pendingId = pendingIdOf(dialect, 'm');
  const visible = isVisibleTask(caller, 't', 1);
  params.push(...visible.params);
  const workspace = filter.workspaceId === undefined ? undefined : bind(filter.workspaceId);
  const since = filter.createdSince === undefined ? undefined : bind(filter.createdSince);
  const after = filter.after && { createdAt: bind(filter.after.createdAt), id: bind(filter.after.id) };
  const limit = bind(filter.limit + 1);

  const isScoped = caller.kind !== 'unscoped' || workspace !== undefined;
  const taskOfRow = (row: string): string =>
    `COALESCE(NULLIF(${row}.task_id, ''), (SELECT NULLIF(ts.task_id, '') FROM task_sessions ts WHERE ts.id = ${row}.task_session_id))`;
  const conditions = [
    isActiveBundleRow(dialect, 'm'),
    // One row stands for its bundle: the first pending one.
    `NOT EXISTS (SELECT 1 FROM task_session_messages e WHERE ${pendingIdOf(dialect, 'e')} = ${pendingId}
      AND ${isPendingRow(dialect, 'e')} AND (e.created_at, e.id) < (m.created_at, m.id))`,
    // L16, and rows that name different tasks, which nobody scoped may see (M5).
    `NOT EXISTS (SELECT 1 FROM task_session_messages l WHERE ${pendingIdOf(dialect, 'l')} = ${pendingId}
      AND (NOT ${dialect.metadataIsNonEmptyText('l.metadata', 'question_id')}
        ${caller.kind === 'unscoped' ? '' : `OR ${taskOfRow('l')} <> ${taskOfRow('m')}`}))`,
    // M5a: without a task it is listed for nobody.
    isScoped
      ? `EXISTS (SELECT 1 FROM tasks t WHERE t.id = ${taskOfRow('m')} AND ${visible.sql}
          ${workspace === undefined ? '' : `AND t.workspace_id = ${workspace}`})`
      : `${taskOfRow('m')} IS NOT NULL`,
  ].join('\n    AND ');

  const bundleId = dialect.bytewise(pendingId);
  const keyed = (key: string): string =>
    [
      ...(since === undefined ? [] : [`${key} >= ${since}`]),
      ...(after === undefined ? [] : [`(${key}, ${bundleId}) > (${after.createdAt}, ${after.id})`]),
    ]
      .map((condition) => `AND ${condition}`)
      .join('\n    ');
  const computed = `(SELECT MIN(d.created_at) FROM task_session_messages d WHERE ${pendingIdOf(dialect, 'd')} = ${pendingId})`;
  const { rows } = await sql.query<BundleKey & Record<string, string>>(
    `SELECT pending_id, created_at FROM (
       SELECT * FROM (
         SELECT ${bundleId} AS pending_id, m.bundle_created_at AS created_at FROM task_session_messages m
         WHERE m.bundle_created_at = m.created_at
           AND NOT EXISTS (SELECT 1 FROM task_session_messages u
             WHERE ${pendingIdOf(dialect, 'u')} = ${pendingId} AND ${isUnkeyedRow(dialect, 'u')})
           AND ${conditions}
           ${keyed('m.bundle_created_at')}
         ORDER BY m.bundle_created_at, ${bundleId} LIMIT ${limit}
       ) AS walked
       UNION ALL
       SELECT * FROM (
         SELECT ${bundleId} AS pending_id, ${computed} AS created_at FROM task_session_messages m
         WHERE ${pendingId} IN (SELECT ${pendingIdOf(dialect, 'u')} FROM task_session_messages u
             WHERE ${isUnkeyedRow(dialect, 'u')})
           AND ${conditions}
           ${keyed(computed)}
         ORDER BY 2, 1 LIMIT ${limit}
       ) AS computed
     ) AS page ORDER BY created_at, pending_id LIMIT ${limit}`,
    params,
  );
  return rows;
}
