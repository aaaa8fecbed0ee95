import type { Instant } from '../../common/clock.js';
import type { PagePosition } from '../../common/page-cursor.js';
import type { Caller } from '../../identity/caller.js';
import type { SqlExecutor, SqlValue } from '../../persistence/unit-of-work.js';
import { isVisibleTask } from '../../tasks/persistence/visible-tasks.predicate.js';
import { inD2Order, readBundleRow, type BundleRow, type StoredRow } from '../domain/bundle.js';
import { isActiveBundleRow, isPendingRow, isRowOfBundle, pendingIdOf } from './active-bundle.predicate.js';
import { storedRowColumns } from './bundles.repository.js';

export interface ActiveBundleFilter {
  readonly workspaceId?: string;
  readonly createdSince?: Instant;
  readonly after?: PagePosition;
  readonly limit: number;
}

export interface ListedBundle extends PagePosition {
  /** In D2 order. */
  readonly rows: readonly BundleRow[];
}

/**
 * The bundle's place in the walk cannot be taken from this row's `bundle_created_at`: the row was written without it,
 * or its time was changed since. The text of an index's condition.
 */
export function isUnkeyedRow(row: string): string {
  return `${row}.type = 'clarification_request' AND (${row}.bundle_created_at IS NULL OR ${row}.bundle_created_at <> ${row}.created_at)`;
}

/** M5 for one row; NULL when neither it nor its session names a task. */
function taskOf(row: string): string {
  return `COALESCE(NULLIF(${row}.task_id, ''), (SELECT NULLIF(ts.task_id, '') FROM task_sessions ts WHERE ts.id = ${row}.task_session_id))`;
}

/**
 * A page of the active bundles that a caller may see, with their rows, by (created_at, pending_id), and one more when
 * there is a next page. One statement, so that a page is of one instant; everything that excludes a bundle is inside
 * it, so that LIMIT counts what is returned.
 *
 * An ordered walk: each bundle stands for its first pending row, met in the order of `bundle_created_at` in an index of
 * pending rows alone. The product gives all rows of a bundle one time and writes it there too, so it is D1's value. A
 * bundle with a row of which that is not true, or that has no such value, stands for that row instead and is placed by
 * D1 itself, computed: the column speeds the walk up and decides nothing.
 */
export async function listActiveBundles(
  sql: SqlExecutor,
  caller: Caller,
  filter: ActiveBundleFilter,
): Promise<readonly ListedBundle[]> {
  const { dialect } = sql;
  const visible = isVisibleTask(caller, 't', 1);
  const params: SqlValue[] = [...visible.params];
  const bind = (value: SqlValue): string => `$${params.push(value)}`;
  const workspace = filter.workspaceId === undefined ? undefined : bind(filter.workspaceId);
  const since = filter.createdSince === undefined ? undefined : bind(filter.createdSince);
  const after = filter.after && { createdAt: bind(filter.after.createdAt), id: bind(filter.after.id) };
  const limit = bind(filter.limit + 1);

  const bundleId = (row: string): string => dialect.bytewise(pendingIdOf(dialect, row));
  const needsOneTask = caller.kind !== 'unscoped' || workspace !== undefined;

  /** No row of the bundle says that it is not listed, or that it is listed by another row than `row`: L16, M5. */
  const isListedBy = (row: string, anotherStands: string): string =>
    `NOT EXISTS (SELECT 1 FROM task_session_messages b
       WHERE ${isRowOfBundle(dialect, 'b', pendingIdOf(dialect, row))}
         AND (${anotherStands}
           OR NOT ${dialect.metadataIsNonEmptyText('b.metadata', 'question_id')}
           OR ${needsOneTask ? `COALESCE(${taskOf('b')}, '') <> COALESCE(${taskOf(row)}, '')` : `${taskOf('b')} IS NULL`})${dialect.rowByRow})`;
  const isVisible = (row: string): string =>
    needsOneTask
      ? `AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = ${taskOf(row)} AND ${visible.sql}
           ${workspace === undefined ? '' : `AND t.workspace_id = ${workspace}`}${dialect.rowByRow})`
      : '';
  const isOnPage = (row: string, createdAt: string): string =>
    [
      ...(since === undefined ? [] : [`AND ${createdAt} >= ${since}`]),
      ...(after === undefined ? [] : [`AND (${createdAt}, ${bundleId(row)}) > (${after.createdAt}, ${after.id})`]),
    ].join(' ');

  const isEarlierPending = `(${isPendingRow(dialect, 'b')} AND (b.created_at, b.id) < (m.created_at, m.id))`;
  const walked = `SELECT ${pendingIdOf(dialect, 'm')} AS bundle_id, m.bundle_created_at AS created_at
    FROM task_session_messages m
    WHERE m.bundle_created_at = m.created_at ${isOnPage('m', 'm.bundle_created_at')}
      AND ${isActiveBundleRow(dialect, 'm')}
      AND ${isListedBy('m', `(${isUnkeyedRow('b')}) OR ${isEarlierPending}`)}
      ${isVisible('m')}
    ORDER BY m.bundle_created_at, ${bundleId('m')} LIMIT ${limit}`;

  const createdAt = `(SELECT MIN(d.created_at) FROM task_session_messages d WHERE ${isRowOfBundle(dialect, 'd', pendingIdOf(dialect, 'u'))})`;
  const computed = `SELECT ${pendingIdOf(dialect, 'u')} AS bundle_id, ${createdAt} AS created_at
    FROM task_session_messages u
    WHERE ${isUnkeyedRow('u')} AND ${dialect.metadataIsId('u.metadata', 'pending_id')} ${isOnPage('u', createdAt)}
      AND EXISTS (SELECT 1 FROM task_session_messages m
        WHERE ${isRowOfBundle(dialect, 'm', pendingIdOf(dialect, 'u'))}
          AND ${isActiveBundleRow(dialect, 'm')}${dialect.rowByRow})
      AND ${isListedBy('u', `(${isUnkeyedRow('b')} AND b.id < u.id)`)}
      ${isVisible('u')}
    ORDER BY 2, ${bundleId('u')} LIMIT ${limit}`;

  const { rows } = await sql.query<StoredRow & { bundle_id: string; bundle_created_at: Instant }>(
    `SELECT page.bundle_id, page.created_at AS bundle_created_at, ${storedRowColumns(dialect, 'r')}
     FROM (SELECT bundle_id, created_at FROM (
         SELECT * FROM (${walked}) AS walked UNION ALL SELECT * FROM (${computed}) AS computed
       ) AS places ORDER BY created_at, ${dialect.bytewise('bundle_id')} LIMIT ${limit}) AS page
     ${dialect.joinRowByRow('task_session_messages', 'r', isRowOfBundle(dialect, 'r', 'page.bundle_id'))}
     ORDER BY page.created_at, ${dialect.bytewise('page.bundle_id')}`,
    params,
  );
  return bundlesOf(rows);
}

/** @param rows in the order of the page, each bundle's together */
function bundlesOf(
  rows: readonly (StoredRow & { readonly bundle_id: string; readonly bundle_created_at: Instant })[],
): ListedBundle[] {
  const bundles: { id: string; createdAt: Instant; rows: BundleRow[] }[] = [];
  for (const { bundle_id: id, bundle_created_at: createdAt, ...stored } of rows) {
    const last = bundles.at(-1);
    if (last?.id === id) last.rows.push(readBundleRow(stored));
    else bundles.push({ id, createdAt, rows: [readBundleRow(stored)] });
  }
  return bundles.map((bundle) => ({ ...bundle, rows: inD2Order(bundle.rows) }));
}
