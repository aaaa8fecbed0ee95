import { jsonObject } from '../../common/json-object.js';
import { laterOf, plusMilliseconds, type Instant } from '../../common/clock.js';
import type { DomainEvent } from '../../events/domain-event.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import type { ClarificationPort } from '../clarification.port.js';
import { RESUMED_FROM } from '../domain/reservation.js';
import { isTerminal } from '../domain/session-state.js';
import {
  findFirstQueued,
  findLastQueuedAt,
  insertMessage,
  releaseMessage,
  type MessageRow,
} from '../persistence/messages.repository.js';
import type { SessionRow } from '../persistence/sessions.repository.js';
import { findCurrentTurn, type TurnRow } from '../persistence/turns.repository.js';
import type { AnsweredQuestion } from '../resume/call-body.js';
import { messageOf, openTurn, type Prompt } from './open-turn.tx.js';

/**
 * Keeps a prompt for later: a durable message that hangs on the current turn until a turn of its own takes it.
 * Caller holds the session's lock.
 */
export async function enqueuePrompt(tx: Tx, current: TurnRow, prompt: Prompt, now: Instant): Promise<MessageRow> {
  const last = await findLastQueuedAt(tx, current.task_session_id);
  // A clock that stepped back must not let it overtake those that were admitted before it.
  const queuedAt = last === undefined ? now : laterOf(now, plusMilliseconds(last, 1));
  const message = messageOf(prompt, current, queuedAt, now);
  await insertMessage(tx, message);
  return message;
}

/**
 * Releases the longest-waiting prompt into a turn of its own, unless the turn is running, one of the current turn's
 * questions is still open, or a dispatch is under way. The answer to a question does not wait for the turn that asked it: it completes it. Every
 * transaction that may have removed such a barrier ends with this, under the session's lock, so that no prompt is left
 * behind whatever dies next.
 */
export async function releaseQueuedPrompt(
  tx: Tx,
  session: SessionRow,
  clarifications: ClarificationPort,
  now: Instant,
): Promise<readonly DomainEvent[]> {
  if (isTerminal(session.state)) return [];
  if ((await findLastQueuedAt(tx, session.id)) === undefined) return [];
  const current = await findCurrentTurn(tx, session.id);
  const running = current !== undefined && current.completed_at === null ? current.id : undefined;
  const queued = await findFirstQueued(tx, session.id, running);
  if (queued === undefined || (await clarifications.holdsBackPrompts(tx, session.id))) return [];
  const answered = answeredBy(queued);
  const opened = await openTurn(tx, session, {
    now,
    releasedPrompt: queued.content,
    forMailbox: true,
    ...(answered !== undefined && { answered }),
  });
  await releaseMessage(tx, queued.id, opened.turn.id, now);
  return [
    ...opened.events,
    { type: 'session.message.updated', taskId: session.task_id, sessionId: session.id, messageId: queued.id },
  ];
}

/** What a queued prompt that is an answer keeps in its metadata, which is never shown. */
export function answerMetadata(answered: AnsweredQuestion): Record<string, string> {
  const { pendingId, response } = answered;
  return { [RESUMED_FROM]: pendingId, ...(response !== undefined && { response: JSON.stringify(response) }) };
}

function answeredBy(message: MessageRow): AnsweredQuestion | undefined {
  const { [RESUMED_FROM]: pendingId, response } = jsonObject(message.metadata);
  if (typeof pendingId !== 'string') return undefined;
  return { pendingId, ...(typeof response === 'string' && { response: jsonObject(response) }) };
}
