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
import { changeRows, lockActiveRows, lockBundle } from './bundles.repository.js';
import type { ClaimedBundle } from './claim-bundle.tx.js';

export interface Answerer {
  readonly authorType: AuthorType;
  readonly authorId: string;
}

export type Finalized =
  /** Handed over now, or already before. */
  | { readonly kind: 'handed-over'; readonly events: readonly DomainEvent[] }
  /** The rows are no longer this claim's: restored, or gone with their task. */
  | { readonly kind: 'not-ours' };

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
  if (rows.length === 0) return { kind: 'handed-over', events: [] };
  await settle(tx, rows);
  const events = questionEvents(bundle, rows);
  if (bundle.response.reject_reason !== '') events.push(...(await keepReason(tx, session, bundle, answerer, now)));
  if (isTerminal(session.state)) return { kind: 'handed-over', events };
  if (to === 'nobody') {
    events.push(...(await releaseQueuedPrompt(tx, session, clarifications, now)));
  } else if (session.state !== 'running') {
    await setSessionState(tx, session.id, 'running', null, now);
    events.push({ type: 'session.state_changed', taskId: session.task_id, sessionId: session.id, state: 'running' });
  }
  return { kind: 'handed-over', events };
}

export type Resumed =
  | { readonly kind: 'handed-over'; readonly events: readonly DomainEvent[] }
  /** A newer turn or a final state came first: the answer stays as history and reached nobody. */
  | { readonly kind: 'too-late'; readonly events: readonly DomainEvent[] }
  | { readonly kind: 'not-ours' };

/**
 * Delivery claimed → terminal by resuming an agent that is not waiting, in pull mode: one transaction checks that the
 * bundle's turn is still current, opens the next turn with the answers as its prompt in the mailbox, and clears the
 * intent. While another question of the turn is open the prompt is queued instead, so that it does not supersede it.
 */
export async function resumeByPull(tx: Tx, bundle: ClaimedBundle, answerer: Answerer, now: Instant): Promise<Resumed> {
  const locked = await lockClaim(tx, bundle);
  if (locked === undefined) return { kind: 'not-ours' };
  const { session, rows } = locked;
  if (rows.length === 0) return { kind: 'handed-over', events: [] };
  const current = await findCurrentTurn(tx, session.id);
  await settle(tx, rows);
  const events = questionEvents(bundle, rows);
  if (isTerminal(session.state) || current?.id !== bundle.turnId) return { kind: 'too-late', events };

  const prompt = { content: answerPrompt(bundle.rows), ...answerer };
  if ((await lockActiveRows(tx, session.id)).length > 0) {
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
    return { kind: 'handed-over', events };
  }
  const opened = await openTurn(tx, session, { now, prompt, forMailbox: true, resumedFrom: bundle.pendingId });
  return { kind: 'handed-over', events: [...events, ...opened.events] };
}

/**
 * The session's lock and the claimed rows whose intent is still set; none of them when the hand-over is already
 * settled, undefined when the rows are not this claim's any more.
 */
async function lockClaim(
  tx: Tx,
  bundle: ClaimedBundle,
): Promise<{ session: SessionRow; rows: readonly BundleRow[] } | undefined> {
  const session = await lockSession(tx, bundle.sessionId);
  if (session === undefined) return undefined;
  const claimed = new Set(bundle.claimedRowIds);
  const rows = (await lockBundle(tx, bundle.pendingId)).filter((row) => claimed.has(row.id));
  if (rows.length !== claimed.size || rows.some((row) => row.status !== bundle.claimStatus)) return undefined;
  return { session, rows: rows.filter((row) => row.deliveryPending) };
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
