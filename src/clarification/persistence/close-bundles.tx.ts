import type { Instant } from '../../common/clock.js';
import type { DomainEvent } from '../../events/domain-event.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import type { ClarificationPort } from '../../tasks/clarification.port.js';
import { lockSession, type SessionRow } from '../../tasks/persistence/sessions.repository.js';
import { releaseQueuedPrompt } from '../../tasks/turns/prompt-queue.tx.js';
import type { BundleRow } from '../domain/bundle.js';
import { changeRows, lockActiveRows } from './bundles.repository.js';
import { questionsUpdated } from './question-events.js';

/**
 * active → cancelled (X). Undefined when the bundle is not active: answered, claimed, superseded, expired or gone.
 * Killed before COMMIT nothing has happened; after it the rows say so.
 */
export async function cancelBundle(
  tx: Tx,
  sessionId: string,
  pendingId: string,
  clarifications: ClarificationPort,
  now: Instant,
): Promise<readonly DomainEvent[] | undefined> {
  const session = await lockSession(tx, sessionId);
  if (session === undefined) return undefined;
  const rows = await lockActiveRows(tx, sessionId, pendingId);
  if (rows.length === 0) return undefined;
  const events = await close(tx, rows, 'cancelled', now);
  return [...events, ...(await releaseQueuedPrompt(tx, session, clarifications, now))];
}

/** active → expired, for every open bundle of a session that ends. The caller holds the session's lock. */
export async function expireBundles(tx: Tx, sessionId: string, now: Instant): Promise<readonly DomainEvent[]> {
  return close(tx, await lockActiveRows(tx, sessionId), 'expired', now);
}

/**
 * active live → active detached, once: only rows that are not detached yet. They stay answerable. The caller holds the
 * session's lock.
 * @param pendingId one bundle, or every open one of the session
 */
export async function detachBundles(
  tx: Tx,
  sessionId: string,
  pendingId: string | undefined,
  now: Instant,
): Promise<readonly DomainEvent[]> {
  const rows = (await lockActiveRows(tx, sessionId, pendingId)).filter((row) => !row.agentDisconnected);
  return close(tx, rows, 'detached', now);
}

/** active detached → active live: an agent waits again. The caller holds the session's lock. */
export async function attachBundle(
  tx: Tx,
  session: SessionRow,
  pendingId: string,
  now: Instant,
): Promise<{ readonly isActive: boolean; readonly events: readonly DomainEvent[] }> {
  const active = await lockActiveRows(tx, session.id, pendingId);
  const rows = active.filter((row) => row.agentDisconnected);
  await changeRows(
    tx,
    rows.map((row) => ({ row, change: { kind: 'attached' } })),
    now,
  );
  return { isActive: active.length > 0, events: questionsUpdated(rows) };
}

async function close(
  tx: Tx,
  rows: readonly BundleRow[],
  kind: 'cancelled' | 'expired' | 'detached',
  now: Instant,
): Promise<readonly DomainEvent[]> {
  await changeRows(
    tx,
    rows.map((row) => ({ row, change: { kind } })),
    now,
  );
  const bundles = new Map(rows.map((row) => [row.pendingId, row]));
  return [
    ...questionsUpdated(rows),
    ...[...bundles.values()].map((row): DomainEvent => ({
      type: `clarification.${kind}`,
      taskId: row.taskId,
      sessionId: row.sessionId,
      pendingId: row.pendingId,
    })),
  ];
}
