import type { Instant } from '../../common/clock.js';
import type { PagePosition } from '../../common/page-cursor.js';
import type { Caller } from '../../identity/caller.js';
import type { Dialect } from '../../persistence/dialect.js';
import type { SqlExecutor, SqlValue } from '../../persistence/unit-of-work.js';
import { isVisibleTask } from '../../tasks/persistence/visible-tasks.predicate.js';
import { inD2Order, readBundleRow, type BundleRow, type StoredRow } from '../domain/bundle.js';
import {
  isActiveBundleRow,
  isNotNotedSuperseded,
  isPendingRow,
  isRowOfBundle,
  pendingIdOf,
} from './active-bundle.predicate.js';
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

/** A question that was written without `bundle_created_at`. The text of an index's condition. */
export function isUnkeyedRow(dialect: Dialect, row: string): string {
  return `${row}.type = 'clarification_request' AND ${row}.bundle_created_at IS NULL
    AND ${dialect.metadataIsId(`${row}.metadata`, 'pending_id')} AND ${isNotNotedSuperseded(row)}`;
}

/** A question whose time was changed since its `bundle_created_at` was written. The text of an index's condition. */
export function isMovedRow(dialect: Dialect, row: string): string {
  return `${row}.type = 'clarification_request' AND ${row}.bundle_created_at <> ${row}.created_at
    AND ${dialect.metadataIsId(`${row}.metadata`, 'pending_id')} AND ${isNotNotedSuperseded(row)}`;
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
 * Each bundle is met once, through the one of its rows that stands for it:
 *
 *   keyed     its first pending row, in the order of `bundle_created_at`. The product writes all rows of a bundle at
 *             one time and writes that there too, so it is D1's value, whatever has become of the other rows.
 *   unkeyed   its first row without that column, of any status, in the order of created_at: rows of another hand. Being
 *             earlier than the first pending row it is the earliest of all.
 *   computed  a row whose time was changed: there are few, and their bundles are placed by D1 itself.
 *
 * The two walks go by an index in the page's order and end with the page. That column speeds them up and decides
 * nothing: whatever it holds, no bundle is left out or met twice.
 *
 * Rows of which it is noted that a newer turn superseded them stand for nothing and are not met: there may be any number
 * of them before the page. The note decides nothing else; a row without it is asked whether it is active like any other.
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

  const ofBundle = (other: string, row: string): string => isRowOfBundle(dialect, other, pendingIdOf(dialect, row));
  const needsOneTask = caller.kind !== 'unscoped' || workspace !== undefined;
  const tasksDiffer = (row: string): string =>
    needsOneTask ? `COALESCE(${taskOf('b')}, '') <> COALESCE(${taskOf(row)}, '')` : `${taskOf('b')} IS NULL`;
  const isVisible = (row: string): string =>
    needsOneTask
      ? `EXISTS (SELECT 1 FROM tasks t WHERE t.id = ${taskOf(row)} AND ${visible.sql}
           ${workspace === undefined ? '' : `AND t.workspace_id = ${workspace}`}${dialect.rowByRow})`
      : 'TRUE';

  /**
   * The places of the bundles for which a `row` stands, in the page's order.
   *
   * @param anotherStands of a row `b` of the bundle: it stands for it instead
   * @param condition what else `row` has to be; given what is to be asked last
   */
  const places = (
    row: string,
    createdAt: string,
    anotherStands: string,
    condition: (further: string) => string,
  ): string => {
    const bundleId = dialect.bytewise(pendingIdOf(dialect, row));
    const isListed = `NOT EXISTS (SELECT 1 FROM task_session_messages b WHERE ${ofBundle('b', row)}
        AND (${anotherStands} OR NOT ${dialect.metadataIsNonEmptyText('b.metadata', 'question_id')}
          OR ${tasksDiffer(row)})${dialect.rowByRow})
      AND ${isVisible(row)}`;
    return `SELECT ${pendingIdOf(dialect, row)} AS bundle_id, ${createdAt} AS created_at
      FROM task_session_messages ${row}
      WHERE ${condition(isListed)}
        ${since === undefined ? '' : `AND ${createdAt} >= ${since}`}
        ${after === undefined ? '' : `AND (${createdAt}, ${bundleId}) > (${after.createdAt}, ${after.id})`}
      ORDER BY ${createdAt}, ${bundleId} LIMIT ${limit}`;
  };
  const isOfActiveBundle = (row: string, further: string): string =>
    `CASE WHEN EXISTS (SELECT 1 FROM task_session_messages a
       WHERE ${ofBundle('a', row)} AND ${isActiveBundleRow(dialect, 'a')}${dialect.rowByRow})
     THEN ${further} ELSE FALSE END`;
  const earlierStands = (row: string): string =>
    `((b.created_at, b.id) < (${row}.created_at, ${row}.id) AND ${isNotNotedSuperseded('b')}
        AND (b.bundle_created_at IS NULL OR (${isPendingRow(dialect, 'b')})))
      OR (${isMovedRow(dialect, 'b')})`;

  const keyed = places(
    'm',
    'm.bundle_created_at',
    earlierStands('m'),
    (further) => `m.bundle_created_at = m.created_at AND ${isNotNotedSuperseded('m')}
      AND ${isActiveBundleRow(dialect, 'm', further)}`,
  );
  const unkeyed = places(
    'n',
    'n.created_at',
    earlierStands('n'),
    (further) => `${isUnkeyedRow(dialect, 'n')} AND ${isOfActiveBundle('n', further)}`,
  );
  const computed = places(
    'u',
    `(SELECT MIN(d.created_at) FROM task_session_messages d WHERE ${ofBundle('d', 'u')})`,
    `(b.id < u.id AND ${isMovedRow(dialect, 'b')})`,
    (further) => `${isMovedRow(dialect, 'u')} AND ${isOfActiveBundle('u', further)}`,
  );
  const { rows } = await sql.query<StoredRow & { bundle_id: string; bundle_created_at: Instant }>(
    `SELECT page.bundle_id, page.created_at AS bundle_created_at, ${storedRowColumns(dialect, 'r')}
     FROM (SELECT bundle_id, created_at FROM (
         SELECT * FROM (${keyed}) AS keyed
         UNION ALL SELECT * FROM (${unkeyed}) AS unkeyed
         UNION ALL SELECT * FROM (${computed}) AS computed
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
