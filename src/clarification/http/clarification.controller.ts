import { Body, Controller, Get, Param, Post, Query } from '@nestjs/common';
import type { Deadline } from '../../common/deadline.js';
import type { OnReply } from '../../common/on-reply.js';
import { Contract } from '../../http/contract.js';
import { CallerGoneParam, CallerParam, DeadlineParam, OnReplyParam } from '../../http/request-params.js';
import type { Caller } from '../../identity/caller.js';
import type { AuthorisedBundle } from '../bundle-access.js';
import { ClarificationListing } from '../clarification-listing.js';
import { ClarificationRequests } from '../clarification-requests.js';
import { ClarificationResolver, UNAVAILABLE } from '../clarification-resolver.js';
import { OUTCOME_SCHEMA } from '../domain/outcome-input.js';
import { CreateBundleInput, ListBundlesInput, WaitInput } from '../inputs.js';
import {
  BundleDetailView,
  BundlePageView,
  CancelledView,
  CreatedBundleView,
  ResolutionView,
  WaitResponseView,
} from '../schemas.js';
import { AuthorisedBundleParam } from './authorised-bundle.js';
import { RestWait } from './rest-wait.js';

const tag = 'Clarification';
const ofBundle = { kind: 'bundle', from: { param: 'id' }, agents: true } as const;

@Controller('api/v1/clarification')
export class ClarificationController {
  constructor(
    private readonly requests: ClarificationRequests,
    private readonly listing: ClarificationListing,
    private readonly resolver: ClarificationResolver,
    private readonly restWait: RestWait,
  ) {}

  @Post('request')
  @Contract({
    summary: 'Ask one to four questions',
    description: 'Asking the same again in the same turn gives the same pending_id and writes nothing.',
    tag,
    access: { kind: 'session', from: { body: 'session_id' }, agents: true },
    body: CreateBundleInput,
    success: { status: 200, description: 'The name of the bundle', schema: CreatedBundleView },
    errors: ['conflict'],
  })
  create(@CallerParam() caller: Caller, @Body() input: CreateBundleInput, @DeadlineParam() deadline: Deadline) {
    return this.requests.create(caller, input, deadline);
  }

  @Get()
  @Contract({
    summary: 'List the questions that the caller may answer now',
    tag,
    access: { kind: 'identified', agents: false },
    query: ListBundlesInput,
    success: { status: 200, description: 'A page, oldest first', schema: BundlePageView },
  })
  list(@CallerParam() caller: Caller, @Query() input: ListBundlesInput, @DeadlineParam() deadline: Deadline) {
    return this.listing.list(caller, input, deadline);
  }

  @Get(':id')
  @Contract({
    summary: 'Read a bundle, also after it was resolved',
    tag,
    access: ofBundle,
    success: { status: 200, description: 'The bundle', schema: BundleDetailView },
  })
  get(@CallerParam() caller: Caller, @Param('id') id: string, @DeadlineParam() deadline: Deadline) {
    return this.requests.get(caller, id, deadline);
  }

  @Get(':id/wait')
  @Contract({
    summary: 'Wait for the answer',
    description: 'Safe to repeat: a bundle that was resolved gives its response at once, also after a restart.',
    tag,
    access: ofBundle,
    query: WaitInput,
    success: { status: 200, description: 'The response', schema: WaitResponseView },
    errors: ['not_active', 'wait_timeout'],
  })
  wait(
    @CallerParam() caller: Caller,
    @Param('id') id: string,
    @Query() input: WaitInput,
    @CallerGoneParam() callerGone: AbortSignal,
    @OnReplyParam() onReply: OnReply,
  ) {
    return this.restWait.wait(caller, id, input, callerGone, onReply);
  }

  @Post(':id/respond')
  @Contract({
    summary: 'Answer or decline a bundle',
    description: 'Exactly one caller wins; everybody after it is told what the winner said.',
    tag,
    access: { ...ofBundle, agents: false },
    body: { schema: OUTCOME_SCHEMA },
    success: { status: 200, description: "The winner's status and response, whoever asks", schema: ResolutionView },
    unavailable: UNAVAILABLE,
    errors: ['not_active'],
  })
  async respond(
    @CallerParam() caller: Caller,
    @AuthorisedBundleParam() authorised: AuthorisedBundle,
    @Body() outcome: unknown,
    @DeadlineParam() deadline: Deadline,
  ) {
    const how = { surface: 'rest', deadline, authorised } as const;
    return { success: true, ...(await this.resolver.resolveBundle(caller, authorised.pendingId, outcome, how)) };
  }

  @Post(':id/cancel')
  @Contract({
    summary: 'Cancel a bundle that nobody needs an answer to any more',
    tag,
    access: ofBundle,
    success: { status: 200, description: 'It can no longer be answered', schema: CancelledView },
    errors: ['not_active'],
  })
  async cancel(@CallerParam() caller: Caller, @Param('id') id: string, @DeadlineParam() deadline: Deadline) {
    await this.requests.cancel(caller, id, deadline);
    return { success: true };
  }
}
