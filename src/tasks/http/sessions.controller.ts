import { Body, Controller, Get, Param, Patch, Post } from '@nestjs/common';
import type { Deadline } from '../../common/deadline.js';
import { Contract } from '../../http/contract.js';
import { CallerParam, DeadlineParam } from '../../http/request-params.js';
import type { Caller } from '../../identity/caller.js';
import { OpenTurnInput, UpdateSessionInput } from '../inputs.js';
import { Sessions } from '../sessions/sessions.service.js';
import { Turns } from '../turns/turns.service.js';
import { AGENT_TOKEN, COMPLETED_TURN, ENDED_SESSION, SESSION, TURN, TURNS } from './examples.js';
import { AgentTokenView, SessionView, TurnListView, TurnView, UpdatedSessionView } from '../views.js';

const ofSession = { kind: 'session', from: { param: 'id' }, agents: true } as const;
const ofTurn = { kind: 'turn', from: { param: 'turnId' }, agents: true } as const;
const notForAgents = { ...ofSession, agents: false } as const;

@Controller('api/v1/task-sessions')
export class SessionsController {
  constructor(
    private readonly sessions: Sessions,
    private readonly turns: Turns,
  ) {}

  @Get(':id')
  @Contract({
    summary: 'Read a session',
    tag: 'Sessions',
    access: ofSession,
    success: { status: 200, description: 'The session', schema: SessionView, example: SESSION },
  })
  get(@CallerParam() caller: Caller, @Param('id') id: string, @DeadlineParam() deadline: Deadline) {
    return this.sessions.get(caller, id, deadline);
  }

  @Patch(':id')
  @Contract({
    summary: "Set a session's state or how its agent is resumed",
    description: 'Entering a final state expires the open questions of its current turn; a final state is never left.',
    tag: 'Sessions',
    access: notForAgents,
    body: UpdateSessionInput,
    bodyExample: { state: 'completed' },
    success: { status: 200, description: 'The session', schema: UpdatedSessionView, example: ENDED_SESSION },
    errors: { conflict: 'session is completed, which is final' },
  })
  update(
    @CallerParam() caller: Caller,
    @Param('id') id: string,
    @Body() input: UpdateSessionInput,
    @DeadlineParam() deadline: Deadline,
  ) {
    return this.sessions.update(caller, id, input, deadline);
  }

  @Post(':id/agent-token')
  @Contract({
    summary: "Replace the agent's token",
    tag: 'Sessions',
    access: notForAgents,
    success: {
      status: 200,
      description: 'The new token; the old one no longer works',
      schema: AgentTokenView,
      example: AGENT_TOKEN,
    },
  })
  renewAgentToken(@CallerParam() caller: Caller, @Param('id') id: string, @DeadlineParam() deadline: Deadline) {
    return this.sessions.renewAgentToken(caller, id, deadline);
  }

  @Post(':id/turns')
  @Contract({
    summary: 'Open the next turn',
    description: 'It becomes current: open questions of older turns can never be answered again.',
    tag: 'Turns',
    access: ofSession,
    body: OpenTurnInput,
    bodyExample: { prompt: 'Go on with the invoices.' },
    success: { status: 201, description: 'The turn', schema: TurnView, example: TURN },
    errors: { conflict: 'session is completed, which is final' },
  })
  openTurn(
    @CallerParam() caller: Caller,
    @Param('id') id: string,
    @Body() input: OpenTurnInput,
    @DeadlineParam() deadline: Deadline,
  ) {
    return this.turns.open(caller, id, input, deadline);
  }

  @Get(':id/turns')
  @Contract({
    summary: 'List the turns of a session',
    tag: 'Turns',
    access: ofSession,
    success: { status: 200, description: 'Oldest first', schema: TurnListView, example: TURNS },
  })
  listTurns(@CallerParam() caller: Caller, @Param('id') id: string, @DeadlineParam() deadline: Deadline) {
    return this.turns.list(caller, id, deadline);
  }

  @Post(':id/turns/:turnId/complete')
  @Contract({
    summary: 'Complete a turn',
    description: 'Its open questions are detached and stay answerable while it is current.',
    tag: 'Turns',
    access: ofTurn,
    success: { status: 200, description: 'The turn', schema: TurnView, example: COMPLETED_TURN },
  })
  completeTurn(
    @CallerParam() caller: Caller,
    @Param('id') id: string,
    @Param('turnId') turnId: string,
    @DeadlineParam() deadline: Deadline,
  ) {
    return this.turns.complete(caller, id, turnId, deadline);
  }
}
