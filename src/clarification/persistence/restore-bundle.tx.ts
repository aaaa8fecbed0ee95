import type { Instant } from '../../common/clock.js';
import type { DomainEvent } from '../../events/domain-event.js';
import type { SqlExecutor, Tx } from '../../persistence/unit-of-work.js';
import { isTerminal } from '../../tasks/domain/session-state.js';
import { lockSession } from '../../tasks/persistence/sessions.repository.js';
import { findCurrentTurn } from '../../tasks/persistence/turns.repository.js';
import { isResolvedStatus, type BundleRow } from '../domain/bundle.js';
import { changeRows, lockBundle } from './bundles.repository.js';
import { questionsUpdated } from './question-events.js';

export type Restored =
  | { readonly kind: 'restored'; readonly events: readonly DomainEvent[] }
  /** A newer turn or a final state forbids it: the answer stays as history, its intent is cleared. */
  | { readonly kind: 'kept'; readonly events: readonly DomainEvent[] }
  /** Nothing was owed any more, or somebody is seeing to it. */
  | { readonly kind: 'settled'; readonly events: readonly DomainEvent[] }
  /** Deleted with its task. */
  | { readonly kind: 'gone' };

/**
 * Delivery claimed → active, for a hand-over that is known not to have happened. Only the claimed rows that still owe
 * their hand-over move; a row that was terminal before the claim never does. Repeats every precondition under the
 * session's lock; killed before COMMIT, the intent is still set and the next recovery tries again.
 *
 * @param owed.rowIds the claimed rows, or undefined for all that carry an intent
 * @param isBeingDelivered asked under the lock, where no claim of this bundle can commit meanwhile
 */
export async function restoreBundle(
  tx: Tx,
  owed: { readonly pendingId: string; readonly sessionId: string; readonly rowIds?: readonly string[] },
  now: Instant,
  isBeingDelivered: () => boolean = () => false,
): Promise<Restored> {
  const session = await lockSession(tx, owed.sessionId);
  if (session === undefined) return { kind: 'gone' };
  if (isBeingDelivered()) return { kind: 'settled', events: [] };
  const wanted = owed.rowIds === undefined ? undefined : new Set(owed.rowIds);
  const rows = (await lockBundle(tx, owed.pendingId)).filter(
    (row) =>
      row.sessionId === owed.sessionId &&
      row.deliveryPending &&
      isResolvedStatus(row.status) &&
      (wanted === undefined || wanted.has(row.id)),
  );
  if (rows.length === 0) return { kind: 'settled', events: [] };
  const current = await findCurrentTurn(tx, session.id);
  const isOpen = !isTerminal(session.state) && rows.every((row) => row.turnId === current?.id);
  const about = { taskId: session.task_id, sessionId: session.id };
  const events = questionsUpdated(rows);
  if (!isOpen) {
    await changeRows(tx, all(rows, 'settled'), null);
    return { kind: 'kept', events };
  }
  await changeRows(tx, all(rows, 'restored'), now);
  events.push({ type: 'clarification.restored', ...about, pendingId: owed.pendingId });
  return { kind: 'restored', events };
}

function all(rows: readonly BundleRow[], kind: 'settled' | 'restored') {
  return rows.map((row) => ({ row, change: { kind } as const }));
}

export interface DeliveryIntent {
  readonly pendingId: string;
  readonly sessionId: string;
}

/** Bundles whose hand-over is not settled, from the small index over intents. */
export async function listDeliveryIntents(sql: SqlExecutor): Promise<readonly DeliveryIntent[]> {
  const pendingId = sql.dialect.metadataText('m.metadata', 'pending_id');
  const { rows } = await sql.query<{ pending_id: string; session_id: string }>(
    `SELECT DISTINCT ${pendingId} AS pending_id, m.task_session_id AS session_id FROM task_session_messages m
     WHERE m.type = 'clarification_request' AND ${sql.dialect.metadataFlag('m.metadata', 'response_delivery_pending')}
       AND COALESCE(${pendingId}, '') <> ''`,
  );
  return rows.map((row) => ({ pendingId: String(row.pending_id), sessionId: row.session_id }));
}
