import { Injectable } from '@nestjs/common';
import { Clock, type Instant } from '../../common/clock.js';
import type { Deadline } from '../../common/deadline.js';
import { ConflictError, NotFoundError } from '../../common/domain-error.js';
import { jsonObject } from '../../common/json-object.js';
import { decodeCursor, encodeCursor } from '../../common/page-cursor.js';
import type { DomainEvent } from '../../events/domain-event.js';
import { EventBus } from '../../events/event-bus.js';
import type { Caller } from '../../identity/caller.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import { Reader, UnitOfWork } from '../../persistence/unit-of-work.js';
import { authorOf } from '../authorization/author.js';
import { refuseAgents, TaskAccess } from '../authorization/task-access.js';
import { Clarifications } from '../clarification.port.js';
import { refuseEnded } from '../domain/session-state.js';
import type { ListMessagesInput, SendMessageInput } from '../inputs.js';
import { given, pageSize } from '../page.js';
import {
  findByClientMessageId,
  insertMessage,
  listMessages,
  type MessagePageFilter,
  type MessageRow,
} from '../persistence/messages.repository.js';
import { lockSession, type SessionRow } from '../persistence/sessions.repository.js';
import { findCurrentTurn, findNewestPublishedTurn } from '../persistence/turns.repository.js';
import { messageOf, openTurn, type Prompt } from '../turns/open-turn.tx.js';
import { enqueuePrompt } from '../turns/prompt-queue.tx.js';
import { messageView, type MessageView } from '../views.js';

export type Admission = 'sent' | 'queued';

export interface AdmittedMessage {
  readonly message: MessageView;
  readonly admission: Admission;
}

@Injectable()
export class Messages {
  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly access: TaskAccess,
    private readonly clarifications: Clarifications,
    private readonly events: EventBus,
  ) {}

  async listOfSession(
    caller: Caller,
    sessionId: string,
    input: ListMessagesInput,
    deadline: Deadline,
  ): Promise<{ messages: MessageView[]; next_cursor: string }> {
    await this.access.session(caller, sessionId, deadline);
    return this.page({ sessionId }, input, deadline);
  }

  /** The messages of all of a task's sessions, or of one of them, oldest first. */
  async listOfTask(
    caller: Caller,
    taskId: string,
    input: ListMessagesInput & { readonly session_id?: string },
    deadline: Deadline,
  ): Promise<{ messages: MessageView[]; next_cursor: string }> {
    refuseAgents(caller);
    await this.access.task(caller, taskId, deadline);
    const sessionId = given(input.session_id);
    if (sessionId !== undefined) await this.access.sessionOfTask(caller, taskId, sessionId, deadline);
    return this.page(sessionId === undefined ? { taskId } : { sessionId }, input, deadline);
  }

  /**
   * Admits a message, once per `client_message_id`: sending it again gives the first reply. An agent's is appended
   * to its current turn. Anybody else's opens a turn, or is queued behind a running turn or an open question.
   * @returns `isNew: false` for a repetition
   * @throws ConflictError when the session has ended, or the id was used for other words
   */
  async admit(
    caller: Caller,
    sessionId: string,
    input: SendMessageInput,
    deadline: Deadline,
  ): Promise<AdmittedMessage & { readonly isNew: boolean }> {
    await this.access.session(caller, sessionId, deadline);
    const now = this.clock.now();
    const { reply, events } = await this.unitOfWork.run('message.admit', deadline, async (tx) => {
      const session = await lockSession(tx, sessionId);
      if (session === undefined) throw new NotFoundError('session not found');
      const known =
        input.client_message_id === undefined
          ? undefined
          : await findByClientMessageId(tx, sessionId, input.client_message_id);
      if (known !== undefined) return { reply: repetition(known, input.content), events: [] };
      refuseEnded(session);
      const prompt: Prompt = {
        content: input.content,
        ...authorOf(caller, 'user'),
        ...(input.client_message_id !== undefined && { clientMessageId: input.client_message_id }),
      };
      const admitted = await (caller.kind === 'agent'
        ? this.append(tx, session, prompt, now)
        : this.open(tx, session, prompt, now));
      return {
        reply: { message: messageView(admitted.message), admission: admitted.admission, isNew: true },
        events: admitted.events,
      };
    });
    this.events.publish(events);
    return reply;
  }

  private async append(tx: Tx, session: SessionRow, prompt: Prompt, now: Instant): Promise<Admitted> {
    const current = await findCurrentTurn(tx, session.id);
    if (current === undefined) throw new ConflictError('session has no turn that the message could belong to');
    const message = messageOf(prompt, current, null, now);
    await insertMessage(tx, message);
    return { message, admission: 'sent', events: [added(session, message)] };
  }

  private async open(tx: Tx, session: SessionRow, prompt: Prompt, now: Instant): Promise<Admitted> {
    const current = await findNewestPublishedTurn(tx, session.id);
    const isBusy =
      current !== undefined &&
      (current.completed_at === null || (await this.clarifications.port.holdsBackPrompts(tx, session.id)));
    if (isBusy) {
      const queued = { ...prompt, metadata: { admitted_to_turn_id: current.id } };
      const message = await enqueuePrompt(tx, current, queued, now);
      return { message, admission: 'queued', events: [added(session, message)] };
    }
    const opened = await openTurn(tx, session, { now, prompt, forMailbox: true });
    if (opened.message === undefined) throw new Error('a turn with a prompt has a first message');
    return { message: opened.message, admission: 'sent', events: opened.events };
  }

  private async page(
    of: Pick<MessagePageFilter, 'sessionId' | 'taskId'>,
    input: ListMessagesInput,
    deadline: Deadline,
  ): Promise<{ messages: MessageView[]; next_cursor: string }> {
    const limit = pageSize(input.limit);
    const cursor = given(input.cursor);
    const found = await listMessages(this.reader.within(deadline), {
      ...of,
      order: input.order ?? 'asc',
      limit,
      ...(cursor !== undefined && { after: decodeCursor(cursor) }),
    });
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return {
      messages: page.map(messageView),
      next_cursor: last === undefined ? '' : encodeCursor({ createdAt: last.created_at, id: last.id }),
    };
  }
}

interface Admitted {
  readonly message: MessageRow;
  readonly admission: Admission;
  readonly events: readonly DomainEvent[];
}

function added(session: SessionRow, message: MessageRow): DomainEvent {
  return { type: 'session.message.added', taskId: session.task_id, sessionId: session.id, messageId: message.id };
}

/** The reply that the first admission got, whatever has become of the message since. */
function repetition(known: MessageRow, content: string): AdmittedMessage & { isNew: boolean } {
  if (known.content !== content) {
    throw new ConflictError('client_message_id was used for a message with other content');
  }
  const { admitted_to_turn_id: queuedBehind } = jsonObject(known.metadata);
  const asAdmitted: MessageRow =
    typeof queuedBehind !== 'string'
      ? known
      : { ...known, turn_id: queuedBehind, queued_at: known.created_at, updated_at: known.created_at };
  return {
    message: messageView(asAdmitted),
    admission: typeof queuedBehind === 'string' ? 'queued' : 'sent',
    isNew: false,
  };
}
