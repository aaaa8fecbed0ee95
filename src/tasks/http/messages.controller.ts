import { Body, Controller, Get, HttpStatus, Param, Post, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { Deadline } from '../../common/deadline.js';
import type { EndSignal } from '../../common/end-signal.js';
import { Contract } from '../../http/contract.js';
import { CallerGoneParam, CallerParam, DeadlineParam } from '../../http/request-params.js';
import type { Caller } from '../../identity/caller.js';
import { ListMessagesInput, ReadMailboxInput, SendMessageInput } from '../inputs.js';
import { Mailbox } from '../mailbox/mailbox.service.js';
import { Messages } from '../messages/messages.service.js';
import { MAILBOX_ENTRY, MESSAGES, QUEUED_MESSAGE, SENT_MESSAGE } from './examples.js';
import { AdmittedMessageView, MailboxEntryView, MessagePageView } from '../views.js';

const ofSession = { kind: 'session', from: { param: 'id' }, agents: true } as const;

@Controller('api/v1/task-sessions/:id')
export class MessagesController {
  constructor(
    private readonly messages: Messages,
    private readonly mailbox: Mailbox,
  ) {}

  @Get('messages')
  @Contract({
    summary: 'Read the transcript of a session',
    tag: 'Messages',
    access: ofSession,
    query: ListMessagesInput,
    success: { status: 200, description: 'A page', schema: MessagePageView, example: MESSAGES },
  })
  list(
    @CallerParam() caller: Caller,
    @Param('id') id: string,
    @Query() input: ListMessagesInput,
    @DeadlineParam() deadline: Deadline,
  ) {
    return this.messages.listOfSession(caller, id, input, deadline);
  }

  @Post('messages')
  @Contract({
    summary: 'Send a message',
    description:
      "Opens a turn, or is queued behind a running turn or an open question. An agent's is appended to its current turn.",
    tag: 'Messages',
    access: ofSession,
    body: SendMessageInput,
    bodyExample: { content: 'Start with the data model.', client_message_id: 'draft-17' },
    success: [
      { status: 201, description: 'Admitted', schema: AdmittedMessageView, example: QUEUED_MESSAGE },
      {
        status: 200,
        description: 'Admitted before under this client_message_id',
        schema: AdmittedMessageView,
        example: SENT_MESSAGE,
      },
    ],
    errors: { conflict: 'client_message_id was used for a message with other content' },
  })
  async send(
    @CallerParam() caller: Caller,
    @Param('id') id: string,
    @Body() input: SendMessageInput,
    @DeadlineParam() deadline: Deadline,
    @Res({ passthrough: true }) response: Response,
  ) {
    const { isNew, ...admitted } = await this.messages.admit(caller, id, input, deadline);
    response.status(isNew ? HttpStatus.CREATED : HttpStatus.OK);
    return admitted;
  }

  @Get('mailbox')
  @Contract({
    summary: 'Read the next turn that waits for the agent',
    description: 'The same one until it is acknowledged.',
    tag: 'Mailbox',
    access: ofSession,
    query: ReadMailboxInput,
    holds: ({ wait = 0 }: ReadMailboxInput) => wait > 0,
    success: [
      { status: 200, description: 'The turn and its prompt', schema: MailboxEntryView, example: MAILBOX_ENTRY },
      { status: 204, description: 'Nothing waits' },
    ],
  })
  async readMailbox(
    @CallerParam() caller: Caller,
    @Param('id') id: string,
    @Query() input: ReadMailboxInput,
    @CallerGoneParam() callerGone: EndSignal,
    @Res({ passthrough: true }) response: Response,
  ) {
    const entry = await this.mailbox.read(caller, id, input.wait ?? 0, callerGone);
    if (entry === undefined) response.status(HttpStatus.NO_CONTENT);
    return entry;
  }

  @Post('mailbox/:turnId/ack')
  @Contract({
    summary: 'Acknowledge a turn of the mailbox',
    tag: 'Mailbox',
    access: { kind: 'turn', from: { param: 'turnId' }, agents: true },
    success: { status: 204, description: 'Acknowledged, now or before' },
  })
  acknowledge(
    @CallerParam() caller: Caller,
    @Param('id') id: string,
    @Param('turnId') turnId: string,
    @DeadlineParam() deadline: Deadline,
  ) {
    return this.mailbox.acknowledge(caller, id, turnId, deadline);
  }
}
