import type { Instant } from '../../common/clock.js';
import type { Dialect } from '../../persistence/dialect.js';
import type { SqlExecutor, SqlValue } from '../../persistence/unit-of-work.js';
import { composeMetadata, type BundleChange } from '../domain/bundle-metadata.js';
import { inD2Order, readBundleRow, type BundleRow, type StoredRow } from '../domain/bundle.js';
import { isAnswerUnconfirmed } from '../../tasks/persistence/dispatches.repository.js';
import {
  isActiveBundleRow,
  isOfCurrentTurn,
  isOwedRow,
  isRowOfBundle,
  pendingIdOf,
} from './active-bundle.predicate.js';

/** The columns of a {@link StoredRow} for `row`, an alias of task_session_messages. */
export function storedRowColumns(dialect: Dialect, row: string): string {
  return `${row}.id, ${row}.task_session_id, ${row}.task_id, ${row}.turn_id, ${row}.type, ${row}.created_at, ${row}.updated_at,
    ${dialect.metadataDocument(`${row}.metadata`)} AS metadata,
    (SELECT rs.task_id FROM task_sessions rs WHERE rs.id = ${row}.task_session_id) AS session_task_id`;
}

/** The questions of a bundle in D2 order; empty when there is no such bundle. */
export async function findBundle(sql: SqlExecutor, pendingId: string): Promise<BundleRow[]> {
  const { rows } = await sql.query<StoredRow>(
    `SELECT ${storedRowColumns(sql.dialect, 'm')} FROM task_session_messages m
     WHERE ${pendingIdOf(sql.dialect, 'm')} = $1 AND m.type = 'clarification_request'
     ORDER BY m.created_at, m.id`,
    [pendingId],
  );
  return read(rows, pendingId);
}

export interface BundleStanding {
  readonly rows: readonly BundleRow[];
  readonly isActive: boolean;
  /** Whether its answer has reached its agent, or will whatever happens: nothing is claimed, or sent without a reply. */
  readonly isDelivered: boolean;
}

/** The bundle, and at the same instant whether it is active (D4) and its answer handed over. */
export async function findBundleStanding(sql: SqlExecutor, pendingId: string): Promise<BundleStanding> {
  const { rows: stored } = await sql.query<StoredRow & { is_active: number; is_unconfirmed: number }>(
    `SELECT ${storedRowColumns(sql.dialect, 'm')},
       CASE WHEN ${isActiveBundleRow(sql.dialect, 'm')} THEN 1 ELSE 0 END AS is_active,
       CASE WHEN ${isAnswerUnconfirmed(sql.dialect, 'm.task_session_id', '$1')} THEN 1 ELSE 0 END AS is_unconfirmed
     FROM task_session_messages m
     WHERE ${pendingIdOf(sql.dialect, 'm')} = $1 AND m.type = 'clarification_request'
     ORDER BY m.created_at, m.id`,
    [pendingId],
  );
  const rows = read(stored, pendingId);
  return {
    rows,
    isActive: stored.some((row) => row.is_active === 1),
    isDelivered: !rows.some((row) => row.deliveryPending) && !stored.some((row) => row.is_unconfirmed === 1),
  };
}

/** The bundle with its rows locked in id order; the caller holds the session's lock. */
export async function lockBundle(sql: SqlExecutor, pendingId: string): Promise<BundleRow[]> {
  const { rows } = await sql.query<StoredRow>(
    `SELECT ${storedRowColumns(sql.dialect, 'm')} FROM task_session_messages m
     WHERE ${pendingIdOf(sql.dialect, 'm')} = $1 AND m.type = 'clarification_request'
     ORDER BY m.id${sql.dialect.lockRows}`,
    [pendingId],
  );
  return read(rows, pendingId);
}

/** The pending rows of the session's active bundles, or of one of them, locked in id order. */
export async function lockActiveRows(sql: SqlExecutor, sessionId: string, pendingId?: string): Promise<BundleRow[]> {
  const params: SqlValue[] = [sessionId];
  if (pendingId !== undefined) params.push(pendingId);
  const onlyThis = pendingId === undefined ? '' : `AND ${pendingIdOf(sql.dialect, 'm')} = $2`;
  const { rows } = await sql.query<StoredRow>(
    `SELECT ${storedRowColumns(sql.dialect, 'm')} FROM task_session_messages m
     WHERE ${isOfCurrentTurn(sql.dialect, 'm', '$1')} ${onlyThis} AND ${isActiveBundleRow(sql.dialect, 'm')}
     ORDER BY m.id${sql.dialect.lockRows}`,
    params,
  );
  return inD2Order(rows.map(readBundleRow));
}

/**
 * The bundles of the session's current turn that are active, or being handed over, each with all its rows. By the
 * indexes of just those: a turn may have asked any number of questions before.
 */
export async function findOpenBundles(sql: SqlExecutor, sessionId: string): Promise<readonly BundleRow[][]> {
  const { dialect } = sql;
  const { rows: stored } = await sql.query<StoredRow>(
    `SELECT ${storedRowColumns(dialect, 'm')}
     FROM (SELECT ${pendingIdOf(dialect, 'p')} AS pending_id FROM task_session_messages p
         ${dialect.byIndex('idx_messages_open_bundles_of_turn')}
         WHERE ${isOfCurrentTurn(dialect, 'p', '$1')} AND ${isActiveBundleRow(dialect, 'p')}
       UNION SELECT ${pendingIdOf(dialect, 'o')} AS pending_id FROM task_session_messages o
         ${dialect.byIndex('idx_messages_delivery_intents')}
         WHERE o.task_session_id = $1 AND ${isOwedRow(dialect, 'o')}) AS open
     ${dialect.joinRowByRow('task_session_messages', 'm', isRowOfBundle(dialect, 'm', 'open.pending_id'))}
     WHERE m.type = 'clarification_request'`,
    [sessionId],
  );
  const bundles = new Map<string, BundleRow[]>();
  for (const row of stored.map(readBundleRow)) {
    const rows = bundles.get(row.pendingId);
    if (rows === undefined) bundles.set(row.pendingId, [row]);
    else rows.push(row);
  }
  return [...bundles.values()];
}

/** Moves the rows in one statement, leaving updated_at alone when it is null. Whoever calls holds their locks and has checked what the move relies on. */
export async function changeRows(
  sql: SqlExecutor,
  changes: readonly { readonly row: BundleRow; readonly change: BundleChange }[],
  updatedAt: Instant | null,
): Promise<void> {
  if (changes.length === 0) return;
  const params: SqlValue[] = [];
  const bind = (value: SqlValue): string => `$${params.push(value)}`;
  const cases = changes.map(({ row, change }) => `WHEN ${bind(row.id)} THEN ${bind(composeMetadata(row, change))}`);
  const ids = changes.map(({ row }) => bind(row.id));
  const stamp = updatedAt === null ? '' : `, updated_at = ${bind(updatedAt)}`;
  const { affected } = await sql.query(
    `UPDATE task_session_messages SET metadata = CASE id ${cases.join(' ')} ELSE metadata END${stamp}
     WHERE id IN (${ids.join(', ')})`,
    params,
  );
  if (affected !== changes.length) throw new Error(`moved ${affected} rows of ${changes.length}`);
}

/** A row whose pending id is not text (PostgreSQL would find the number 5 by '5') belongs to no bundle. */
function read(rows: readonly StoredRow[], pendingId: string): BundleRow[] {
  return inD2Order(rows.map(readBundleRow).filter((row) => row.pendingId === pendingId));
}
