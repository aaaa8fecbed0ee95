import { plusMilliseconds, type Instant } from '../../common/clock.js';
import type { DomainEvent } from '../../events/domain-event.js';
import type { SqlExecutor, Tx } from '../../persistence/unit-of-work.js';
import type { ClarificationPort } from '../../tasks/clarification.port.js';
import {
  attemptedMetadata,
  publishedMetadata,
  readReservation,
  reservationMetadata,
} from '../../tasks/domain/reservation.js';
import { readResumeSettings } from '../../tasks/domain/resume-settings.js';
import { isTerminal } from '../../tasks/domain/session-state.js';
import { oweDispatch } from '../../tasks/persistence/dispatches.repository.js';
import { insertMessage } from '../../tasks/persistence/messages.repository.js';
import {
  deleteTurn,
  findReservation,
  isPureReservation,
  publishReservation,
  recordAttempt,
  type ReservedTurnRow,
} from '../../tasks/persistence/reservations.repository.js';
import { lockSession, setSessionState, type SessionRow } from '../../tasks/persistence/sessions.repository.js';
import { completeRunningTurns, findCurrentTurn } from '../../tasks/persistence/turns.repository.js';
import { callBody } from '../../tasks/resume/call-body.js';
import { pauseAfter } from '../../tasks/resume/resend-schedule.js';
import type { AgentCall } from '../../tasks/resume/resume.port.js';
import { insertNextTurn } from '../../tasks/turns/insert-next-turn.tx.js';
import { messageOf } from '../../tasks/turns/open-turn.tx.js';
import { releaseQueuedPrompt } from '../../tasks/turns/prompt-queue.tx.js';
import { answerPrompt } from '../domain/answer-prompt.js';
import { isResolvedStatus, winnerResponse, type BundleRow } from '../domain/bundle.js';
import { hasOpenQuestion } from './active-sessions.query.js';
import { lockBundle } from './bundles.repository.js';
import type { ClaimedBundle } from './claim-bundle.tx.js';
import { lockClaim, settle, type Answerer } from './claimed-rows.js';
import { questionsUpdated } from './question-events.js';
import { restoreBundle, type Restored } from './restore-bundle.tx.js';

/**
 * The steps by which an answer is handed over to an agent that has to be called, each a transaction of its own:
 *
 *   delivery claimed ──reserve──▶ reserved ──attempt──▶ attempted ──publish──▶ terminal
 *                                     └──────withdraw───────┴──▶ active
 *
 * The intent stays on the claimed rows until the last of them. Killed while reserved, the answer cannot have reached
 * anybody and recovery withdraws it; killed while attempted it may have, and recovery publishes it and calls again.
 */

/** An answer and the turn that is reserved for it. */
export interface ReservedAnswer {
  readonly turnId: string;
  readonly sessionId: string;
  readonly pendingId: string;
  /** The exact rows that were claimed. */
  readonly rowIds: readonly string[];
}

/** (a) The caller holds the session's lock and has seen that the bundle's turn is current. */
export async function reserveTurn(
  tx: Tx,
  session: SessionRow,
  turnId: string,
  bundle: ClaimedBundle,
  answerer: Answerer,
  now: Instant,
): Promise<void> {
  const { turnId: askedInTurnId, pendingId, claimedRowIds: messageIds } = bundle;
  const metadata = reservationMetadata({ askedInTurnId, pendingId, messageIds, answerer });
  await insertNextTurn(tx, session, { id: turnId, mailbox: '', metadata }, now);
}

/**
 * (b) The last look before the agent is called: the reservation, the intents and everything that (a) saw are as they
 * were. From its COMMIT on, the turn is the session's current one.
 * @returns undefined, with nothing changed, when any of it has changed
 */
export async function attemptDispatch(
  tx: Tx,
  bundle: ClaimedBundle,
  turnId: string,
  now: Instant,
): Promise<AgentCall | undefined> {
  const locked = await lockClaim(tx, bundle);
  if (locked === undefined || locked.rows.length !== locked.claimed.length) return undefined;
  const { session } = locked;
  const reservation = await findReservation(tx, session.id, turnId);
  if (reservation === undefined || !isPureReservation(reservation)) return undefined;
  const settings = readResumeSettings(session.resume);
  if (settings.mode !== 'webhook' || isTerminal(session.state)) return undefined;
  if ((await findCurrentTurn(tx, session.id))?.id !== bundle.turnId) return undefined;
  if (await hasOpenQuestion(tx, session.id, bundle.pendingId)) return undefined;
  const body = bodyOf(session, reservation, bundle.pendingId, bundle.rows);
  await recordAttempt(tx, turnId, attemptedMetadata(reservation.metadata), body, now);
  return { id: turnId, url: settings.url, secret: settings.secret, body };
}

export type Published =
  | { readonly kind: 'published'; readonly events: readonly DomainEvent[] }
  /** It was published, or withdrawn, before; or it has gone with its task. */
  | { readonly kind: 'settled'; readonly events: readonly DomainEvent[] };

/**
 * (d), and what (g) and recovery make of a call whose outcome nobody knows: the turn is shown, the answer is its first
 * message, the intents are cleared. An agent that has not accepted it finds it in its mailbox, and is called again.
 *
 * @param how.isAccepted whether the agent has said that it has it
 * @param how.isAnnounced false when the caller sends the turn's own events later, from its metadata
 * @param how.pauseMs until the next call
 */
export async function publishAnswer(
  tx: Tx,
  answer: ReservedAnswer,
  how: { readonly isAccepted: boolean; readonly isAnnounced: boolean; readonly pauseMs: number },
  clarifications: ClarificationPort,
  now: Instant,
): Promise<Published> {
  const session = await lockSession(tx, answer.sessionId);
  const reservation = session && (await findReservation(tx, session.id, answer.turnId));
  if (session === undefined || reservation === undefined) return { kind: 'settled', events: [] };
  const rows = await lockBundle(tx, answer.pendingId);
  const claimed = owedRows(rows, answer);
  await settle(tx, claimed);
  const completed = await completeRunningTurns(tx, session.id, now, reservation.id);
  await publishReservation(tx, reservation.id, {
    metadata: publishedMetadata(reservation.metadata, answer.pendingId, how.isAnnounced),
    mailbox: how.isAccepted ? 'acknowledged' : 'waiting',
    dispatch: how.isAccepted ? 'settled' : '',
    now,
  });
  if (!how.isAccepted && readResumeSettings(session.resume).mode === 'webhook') {
    const body = reservation.dispatch_body ?? bodyOf(session, reservation, answer.pendingId, rows);
    const nextAt = plusMilliseconds(now, how.pauseMs);
    await oweDispatch(tx, reservation.id, { kind: 'unconfirmed', body, attempts: 1, since: now, nextAt });
  }
  const { answerer } = readReservation(reservation.metadata);
  // The turn's first message, whatever the agent has written into it meanwhile.
  const message = messageOf({ content: answerPrompt(rows), ...answerer }, reservation, null, reservation.created_at);
  await insertMessage(tx, message);

  const about = { taskId: session.task_id, sessionId: session.id };
  const events = questionsUpdated(claimed);
  for (const turnId of completed) events.push({ type: 'turn.completed', ...about, turnId });
  if (how.isAnnounced) events.push(...turnEvents(reservation));
  events.push({ type: 'session.message.added', ...about, messageId: message.id });
  if (isTerminal(session.state)) return { kind: 'published', events };
  // The agent may have completed the turn, or wait for an answer in it, before we heard that it has it.
  let after = session;
  const isBusy = reservation.completed_at === null && !(await hasOpenQuestion(tx, session.id, answer.pendingId));
  if (isBusy && session.state !== 'running') {
    await setSessionState(tx, session.id, 'running', null, now);
    after = { ...session, state: 'running' };
    events.push({ type: 'session.state_changed', ...about, state: 'running' });
  }
  // The reservation held back what was admitted meanwhile: answers to questions of this very turn, for one, complete it.
  events.push(...(await releaseQueuedPrompt(tx, after, clarifications, now)));
  return { kind: 'published', events };
}

/** What is said of a turn once it is shown. */
export function turnEvents(turn: ReservedTurnRow): DomainEvent[] {
  const about = { taskId: turn.task_id, sessionId: turn.task_session_id, turnId: turn.id };
  const started: DomainEvent = { type: 'turn.started', ...about };
  return turn.completed_at === null ? [started] : [started, { type: 'turn.completed', ...about }];
}

/**
 * (e) The agent is known not to have been reached: removes the reservation and restores exactly the claimed rows, where
 * the session still lets it.
 * @returns undefined, with nothing changed, when something was written into the turn: then it was reached after all
 */
export async function withdrawAnswer(
  tx: Tx,
  answer: ReservedAnswer,
  clarifications: ClarificationPort,
  now: Instant,
): Promise<Restored | undefined> {
  const session = await lockSession(tx, answer.sessionId);
  if (session === undefined) return { kind: 'gone' };
  const reservation = await findReservation(tx, session.id, answer.turnId);
  if (reservation !== undefined) {
    if (reservation.has_messages === 1) return undefined;
    await deleteTurn(tx, reservation.id);
  }
  const restored = await restoreBundle(tx, answer, now);
  if (restored.kind === 'restored' || restored.kind === 'gone') return restored;
  const released = await releaseQueuedPrompt(tx, session, clarifications, now);
  return { ...restored, events: [...restored.events, ...released] };
}

/** Removes a reservation of which (b) has seen that it cannot go on; the intents stay. Under the session's lock. */
export async function dropReservation(tx: SqlExecutor, answer: ReservedAnswer): Promise<void> {
  const reservation = await findReservation(tx, answer.sessionId, answer.turnId);
  if (reservation !== undefined && reservation.has_messages === 0) await deleteTurn(tx, reservation.id);
}

export const FIRST_PAUSE_MS = pauseAfter(1);

function owedRows(rows: readonly BundleRow[], answer: ReservedAnswer): BundleRow[] {
  return rows.filter(
    (row) =>
      row.sessionId === answer.sessionId &&
      row.deliveryPending &&
      isResolvedStatus(row.status) &&
      answer.rowIds.includes(row.id),
  );
}

function bodyOf(session: SessionRow, turn: ReservedTurnRow, pendingId: string, rows: readonly BundleRow[]): string {
  const response = winnerResponse(rows, pendingId)?.response;
  return callBody({
    sessionId: session.id,
    taskId: session.task_id,
    turnId: turn.id,
    prompt: answerPrompt(rows),
    answered: { pendingId, ...(response !== undefined && { response }) },
  });
}
