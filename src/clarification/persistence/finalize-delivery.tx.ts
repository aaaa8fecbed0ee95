import type { Instant } from '../../common/clock.js';
import type { DomainEvent } from '../../events/domain-event.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import type { ClarificationPort } from '../../tasks/clarification.port.js';
import { isTerminal } from '../../tasks/domain/session-state.js';
import { insertMessage, type AuthorType } from '../../tasks/persistence/messages.repository.js';
import { lockSession, setSessionState, type SessionRow } from '../../tasks/persistence/sessions.repository.js';
import { findCurrentTurn, findTurn } from '../../tasks/persistence/turns.repository.js';
import { messageOf, openTurn } from '../../tasks/turns/open-turn.tx.js';
import { enqueuePrompt, releaseQueuedPrompt } from '../../tasks/turns/prompt-queue.tx.js';
import { answerPrompt } from '../domain/answer-prompt.js';
import type { BundleRow } from '../domain/bundle.js';
import { holdsBackPrompts } from './active-sessions.query.js';
import { changeRows, lockBundle } from './bundles.repository.js';
import type { ClaimedBundle } from './claim-bundle.tx.js';

export interface Answerer {
  readonly authorType: AuthorType;
  readonly authorId: string;
}

/** `settled`: somebody had done it before, in a transaction whose reply was lost. */
export type HandedOverTo = 'waiter' | 'nobody' | 'turn' | 'settled';

export type Finalized =
  | { readonly kind: 'handed-over'; readonly to: HandedOverTo; readonly events: readonly DomainEvent[] }
  /** A newer turn or a final state came first: the answer stays as history and reached nobody. */
  | { readonly kind: 'too-late'; readonly events: readonly DomainEvent[] }
  /** The rows are no longer this claim's: restored, or gone with their task. */
  | { readonly kind: 'not-ours' };

const SETTLED: Finalized = { kind: 'handed-over', to: 'settled', events: [] };

/**
 * Delivery claimed → terminal, because an agent is waiting, or because a rejection resumes nobody: clears the intent on
 * exactly the claimed rows. An agent that takes the response over is running again. Killed before COMMIT, the intent is
 * still set and recovery restores the bundle; after it, a repeated wait returns the response from the rows.
 */
export async function confirmDelivery(
  tx: Tx,
  bundle: ClaimedBundle,
  to: 'waiter' | 'nobody',
  answerer: Answerer,
  clarifications: ClarificationPort,
  now: Instant,
): Promise<Finalized> {
  const locked = await lockClaim(tx, bundle);
  if (locked === undefined) return { kind: 'not-ours' };
  const { session, rows } = locked;
  if (rows.length === 0) return SETTLED;
  await settle(tx, rows);
  const events = questionEvents(bundle, rows);
  if (bundle.response.reject_reason !== '') events.push(...(await keepReason(tx, session, bundle, answerer, now)));
  if (isTerminal(session.state)) return { kind: 'handed-over', to, events };
  let after = session;
  if (to === 'waiter' && session.state !== 'running' && (await isCurrent(tx, bundle))) {
    await setSessionState(tx, session.id, 'running', null, now);
    after = { ...session, state: 'running' };
    events.push({ type: 'session.state_changed', taskId: session.task_id, sessionId: session.id, state: 'running' });
  }
  events.push(...(await releaseQueuedPrompt(tx, after, clarifications, now)));
  return { kind: 'handed-over', to, events };
}

/**
 * Delivery claimed → terminal by resuming an agent that is not waiting, in pull mode: one transaction checks that the
 * bundle's turn is still current, opens the next turn with the answers as its prompt in the mailbox, and clears the
 * intent. While another question of the turn is open, or its answer on its way, the prompt is queued instead, so that it
 * does not supersede it.
 */
export async function resumeByPull(
  tx: Tx,
  bundle: ClaimedBundle,
  answerer: Answerer,
  now: Instant,
): Promise<Finalized> {
  const locked = await lockClaim(tx, bundle);
  if (locked === undefined) return { kind: 'not-ours' };
  const { session, rows } = locked;
  if (rows.length === 0) return SETTLED;
  const current = await findCurrentTurn(tx, session.id);
  await settle(tx, rows);
  const events = questionEvents(bundle, rows);
  if (isTerminal(session.state) || current?.id !== bundle.turnId) return { kind: 'too-late', events };

  const prompt = { content: answerPrompt(bundle.rows), ...answerer };
  if (await holdsBackPrompts(tx, session.id)) {
    const message = await enqueuePrompt(
      tx,
      current,
      { ...prompt, metadata: { resumed_from_pending_id: bundle.pendingId } },
      now,
    );
    events.push({
      type: 'session.message.added',
      taskId: session.task_id,
      sessionId: session.id,
      messageId: message.id,
    });
    return { kind: 'handed-over', to: 'turn', events };
  }
  const opened = await openTurn(tx, session, { now, prompt, forMailbox: true, resumedFrom: bundle.pendingId });
  return { kind: 'handed-over', to: 'turn', events: [...events, ...opened.events] };
}

/**
 * Terminal → delivery claimed again, because the agents for which the hand-over was confirmed have gone without it: sets
 * the intent on the same rows, while their turn is current. Only ever the first step of a transaction that goes on to
 * hand over; alone it would be restored by the reconciliation.
 * @returns what has become of it when there is nothing to hand over again
 */
export async function reopenHandOver(tx: Tx, bundle: ClaimedBundle): Promise<Finalized | undefined> {
  const locked = await lockClaim(tx, bundle);
  if (locked === undefined) return { kind: 'not-ours' };
  if (isTerminal(locked.session.state) || !(await isCurrent(tx, bundle))) return { kind: 'too-late', events: [] };
  await changeRows(
    tx,
    locked.claimed.map((row) => ({ row, change: { kind: 'intent' } })),
    null,
  );
  return undefined;
}

async function isCurrent(tx: Tx, bundle: ClaimedBundle): Promise<boolean> {
  return (await findCurrentTurn(tx, bundle.sessionId))?.id === bundle.turnId;
}

/**
 * The session's lock and the claimed rows whose intent is still set; none of them when the hand-over is already
 * settled, undefined when the rows are not this claim's any more.
 */
async function lockClaim(
  tx: Tx,
  bundle: ClaimedBundle,
): Promise<{ session: SessionRow; claimed: readonly BundleRow[]; rows: readonly BundleRow[] } | undefined> {
  const session = await lockSession(tx, bundle.sessionId);
  if (session === undefined) return undefined;
  const ids = new Set(bundle.claimedRowIds);
  const claimed = (await lockBundle(tx, bundle.pendingId)).filter((row) => ids.has(row.id));
  if (claimed.length !== ids.size || claimed.some((row) => row.status !== bundle.claimStatus)) return undefined;
  return { session, claimed, rows: claimed.filter((row) => row.deliveryPending) };
}

/** Leaves updated_at alone: it is when the answer was given. */
async function settle(tx: Tx, rows: readonly BundleRow[]): Promise<void> {
  await changeRows(
    tx,
    rows.map((row) => ({ row, change: { kind: 'settled' } })),
    null,
  );
}

function questionEvents(bundle: ClaimedBundle, rows: readonly BundleRow[]): DomainEvent[] {
  return rows.map((row) => ({
    type: 'session.message.updated',
    taskId: bundle.taskId,
    sessionId: bundle.sessionId,
    messageId: row.id,
  }));
}

/** The rows don't hold the reason of a rejection; the transcript does. */
async function keepReason(
  tx: Tx,
  session: SessionRow,
  bundle: ClaimedBundle,
  answerer: Answerer,
  now: Instant,
): Promise<DomainEvent[]> {
  const turn = await findTurn(tx, session.id, bundle.turnId);
  if (turn === undefined) return [];
  const message = messageOf({ content: bundle.response.reject_reason, ...answerer }, turn, null, now);
  await insertMessage(tx, message);
  return [{ type: 'session.message.added', taskId: session.task_id, sessionId: session.id, messageId: message.id }];
}
