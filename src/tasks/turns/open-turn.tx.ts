import type { Instant } from '../../common/clock.js';
import { newRowId } from '../../common/row-id.js';
import type { DomainEvent } from '../../events/domain-event.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import { RESUMED_FROM } from '../domain/reservation.js';
import { readResumeSettings } from '../domain/resume-settings.js';
import { oweDispatch } from '../persistence/dispatches.repository.js';
import { insertMessage, type AuthorType, type MessageRow } from '../persistence/messages.repository.js';
import { setSessionState, type SessionRow } from '../persistence/sessions.repository.js';
import { completeRunningTurns, type TurnRow } from '../persistence/turns.repository.js';
import { callBody, type AnsweredQuestion } from '../resume/call-body.js';
import { insertNextTurn } from './insert-next-turn.tx.js';

export interface Prompt {
  readonly content: string;
  readonly authorType: AuthorType;
  readonly authorId: string;
  readonly clientMessageId?: string;
  /** Stored with the message; never shown. */
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface TurnOpening {
  readonly now: Instant;
  /** Stored as the turn's first message. */
  readonly prompt?: Prompt;
  /** Instead of `prompt`: the words of a message that is there already and moves into the turn. */
  readonly releasedPrompt?: string;
  /** Whether the agent did not open the turn itself: it is put into its mailbox, and sent to its webhook if it has one. */
  readonly forMailbox: boolean;
  /** The bundle whose answer the turn carries. */
  readonly answered?: AnsweredQuestion;
}

export interface OpenedTurn {
  readonly turn: TurnRow;
  /** The id of the turn before it. */
  readonly follows?: string;
  readonly message?: MessageRow;
  readonly events: readonly DomainEvent[];
}

/**
 * Opens a session's next turn: completes what was running, makes the session `running` and thereby supersedes every
 * pending question of older turns, which follows from the turns alone. The caller holds the session's lock and has seen
 * that it is not terminal. One transaction: killed anywhere, either all of it happened or nothing.
 */
export async function openTurn(tx: Tx, session: SessionRow, opening: TurnOpening): Promise<OpenedTurn> {
  const { now } = opening;
  const metadata = opening.answered === undefined ? {} : { [RESUMED_FROM]: opening.answered.pendingId };
  const { turn, follows } = await insertNextTurn(
    tx,
    session,
    { id: newRowId(), mailbox: opening.forMailbox ? 'waiting' : '', metadata: JSON.stringify(metadata) },
    now,
  );
  const completed = follows === undefined ? [] : await completeRunningTurns(tx, session.id, now, turn.id);
  const message = opening.prompt && messageOf(opening.prompt, turn, null, now);
  if (message !== undefined) await insertMessage(tx, message);
  const prompt = message?.content ?? opening.releasedPrompt;
  if (opening.forMailbox && prompt !== undefined && readResumeSettings(session.resume).mode === 'webhook') {
    const news = { sessionId: session.id, taskId: session.task_id, turnId: turn.id, prompt };
    const body = callBody({ ...news, ...(opening.answered && { answered: opening.answered }) });
    await oweDispatch(tx, turn.id, { kind: 'owed', body, attempts: 0, since: now, nextAt: now });
  }

  const about = { taskId: session.task_id, sessionId: session.id };
  const events: DomainEvent[] = completed.map((turnId) => ({ type: 'turn.completed', ...about, turnId }));
  events.push({ type: 'turn.started', ...about, turnId: turn.id });
  if (message !== undefined) events.push({ type: 'session.message.added', ...about, messageId: message.id });
  if (session.state !== 'running') {
    await setSessionState(tx, session.id, 'running', null, now);
    events.push({ type: 'session.state_changed', ...about, state: 'running' });
  }
  return { turn, events, ...(message && { message }), ...(follows !== undefined && { follows }) };
}

/** The row of a prompt that belongs to `turn`, or waits behind it when `queuedAt` says since when. */
export function messageOf(
  prompt: Prompt,
  turn: Pick<TurnRow, 'id' | 'task_session_id' | 'task_id'>,
  queuedAt: Instant | null,
  now: Instant,
): MessageRow {
  return {
    id: newRowId(),
    task_session_id: turn.task_session_id,
    task_id: turn.task_id,
    turn_id: turn.id,
    author_type: prompt.authorType,
    author_id: prompt.authorId,
    content: prompt.content,
    requests_input: 0,
    type: 'message',
    client_message_id: prompt.clientMessageId ?? null,
    queued_at: queuedAt,
    metadata: JSON.stringify(prompt.metadata ?? {}),
    created_at: now,
    updated_at: now,
  };
}
