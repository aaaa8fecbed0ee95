import type { Instant } from '../../common/clock.js';
import type { DomainEvent } from '../../events/domain-event.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import type { ClarificationPort } from '../../tasks/clarification.port.js';
import { readResumeSettings } from '../../tasks/domain/resume-settings.js';
import { isTerminal } from '../../tasks/domain/session-state.js';
import { insertMessage } from '../../tasks/persistence/messages.repository.js';
import { setSessionState, type SessionRow } from '../../tasks/persistence/sessions.repository.js';
import { findCurrentTurn, findTurn } from '../../tasks/persistence/turns.repository.js';
import { messageOf, openTurn } from '../../tasks/turns/open-turn.tx.js';
import { answerMetadata, enqueuePrompt, releaseQueuedPrompt } from '../../tasks/turns/prompt-queue.tx.js';
import { answerPrompt } from '../domain/answer-prompt.js';
import { holdsBackPrompts } from './active-sessions.query.js';
import { changeRows } from './bundles.repository.js';
import type { ClaimedBundle } from './claim-bundle.tx.js';
import { lockClaim, settle, type Answerer } from './claimed-rows.js';
import { reserveTurn } from './dispatch-answer.tx.js';
import { questionsUpdated } from './question-events.js';

/** `settled`: somebody had done it before, in a transaction whose reply was lost. */
export type HandedOverTo = 'waiter' | 'nobody' | 'turn' | 'settled';

export type Finalized =
  | { readonly kind: 'handed-over'; readonly to: HandedOverTo; readonly events: readonly DomainEvent[] }
  /** Sent to the agent without a reply; it is in the mailbox as well, and sent again until it is accepted. */
  | { readonly kind: 'unconfirmed'; readonly events: readonly DomainEvent[] }
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
  const events = questionsUpdated(rows);
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

/** What is to follow a transaction that has only reserved the agent's next turn. */
export interface Reserved {
  readonly kind: 'reserved';
}

/**
 * Resumes an agent that is not waiting. One transaction checks that the bundle's turn is still current, and then:
 *
 *   - while another question of the turn is open, or its answer on its way, queues the prompt, so that it does not
 *     supersede it: delivery claimed → terminal
 *   - in pull mode opens the next turn with the answers as its prompt in the mailbox: delivery claimed → terminal
 *   - in webhook mode reserves the next turn and leaves the intent: whoever calls dispatches it
 *
 * @param turnId of the turn that may be reserved
 */
export async function resumeAgent(
  tx: Tx,
  bundle: ClaimedBundle,
  answerer: Answerer,
  turnId: string,
  now: Instant,
): Promise<Finalized | Reserved> {
  const locked = await lockClaim(tx, bundle);
  if (locked === undefined) return { kind: 'not-ours' };
  const { session, rows } = locked;
  if (rows.length === 0) return SETTLED;
  const current = await findCurrentTurn(tx, session.id);
  if (isTerminal(session.state) || current?.id !== bundle.turnId) {
    await settle(tx, rows);
    return { kind: 'too-late', events: questionsUpdated(rows) };
  }
  const isHeldBack = await holdsBackPrompts(tx, session.id, bundle.pendingId);
  if (!isHeldBack && readResumeSettings(session.resume).mode === 'webhook') {
    await reserveTurn(tx, session, turnId, bundle, answerer, now);
    return { kind: 'reserved' };
  }
  await settle(tx, rows);
  const events = questionsUpdated(rows);
  const prompt = { content: answerPrompt(bundle.rows), ...answerer };
  const answered = { pendingId: bundle.pendingId, response: bundle.response };
  if (isHeldBack) {
    const message = await enqueuePrompt(tx, current, { ...prompt, metadata: answerMetadata(answered) }, now);
    events.push({
      type: 'session.message.added',
      taskId: session.task_id,
      sessionId: session.id,
      messageId: message.id,
    });
    return { kind: 'handed-over', to: 'turn', events };
  }
  const opened = await openTurn(tx, session, { now, prompt, forMailbox: true, answered });
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
