import { Body, Controller, Get, Param, Post, Query } from '@nestjs/common';
import type { Deadline } from '../../common/deadline.js';
import type { EndSignal } from '../../common/end-signal.js';
import type { OnReply } from '../../common/on-reply.js';
import { Contract } from '../../http/contract.js';
import { CallerGoneParam, CallerParam, DeadlineParam, OnReplyParam } from '../../http/request-params.js';
import type { Caller } from '../../identity/caller.js';
import type { AuthorisedBundle, ReachedBundle } from '../bundle-access.js';
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
import { AuthorisedBundleParam, ReachedBundleParam } from './authorised-bundle.js';
import { ASKED, CREATED, DETAIL, LISTED, OUTCOME, RESOLVED, WAITED } from './examples.js';
import { RestWait } from './rest-wait.js';

const tag = 'Clarification';
const INACTIVE = 'clarification request is no longer active';
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
    bodyExample: ASKED,
    success: { status: 200, description: 'The name of the bundle', schema: CreatedBundleView, example: CREATED },
    errors: {
      validation_failed: 'questions[0].options must have at least 2 entries',
      conflict: 'session is completed, which is final',
    },
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
    success: { status: 200, description: 'A page, oldest first', schema: BundlePageView, example: LISTED },
    errors: {
      validation_failed: 'created_since must be an RFC 3339 date-time such as 2026-01-31T09:00:00Z',
    },
  })
  list(@CallerParam() caller: Caller, @Query() input: ListBundlesInput, @DeadlineParam() deadline: Deadline) {
    return this.listing.list(caller, input, deadline);
  }

  @Get(':id')
  @Contract({
    summary: 'Read a bundle, also after it was resolved',
    tag,
    access: ofBundle,
    success: { status: 200, description: 'The bundle', schema: BundleDetailView, example: DETAIL },
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
    holds: ({ timeout }: WaitInput) => timeout !== 0,
    success: { status: 200, description: 'The response', schema: WaitResponseView, example: WAITED },
    errors: {
      not_active: INACTIVE,
      wait_timeout: 'the request has not been answered yet; wait again',
    },
  })
  wait(
    @CallerParam() caller: Caller,
    @ReachedBundleParam() bundle: ReachedBundle,
    @Query() input: WaitInput,
    @CallerGoneParam() callerGone: EndSignal,
    @OnReplyParam() onReply: OnReply,
  ) {
    return this.restWait.wait(caller, bundle, input, callerGone, onReply);
  }

  @Post(':id/respond')
  @Contract({
    summary: 'Answer or decline a bundle',
    description: 'Exactly one caller wins; everybody after it is told what the winner said.',
    tag,
    access: { ...ofBundle, agents: false },
    body: { schema: OUTCOME_SCHEMA },
    bodyExample: OUTCOME,
    success: {
      status: 200,
      description: "The winner's status and response, whoever asks",
      schema: ResolutionView,
      example: RESOLVED,
    },
    unavailable: UNAVAILABLE,
    errors: {
      validation_failed: 'answers must have exactly one entry per question: expected 2, got 1',
      not_active: INACTIVE,
      internal: 'the answer could not be handed over; the request can be answered again',
    },
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
    success: {
      status: 200,
      description: 'It can no longer be answered',
      schema: CancelledView,
      example: { success: true },
    },
    errors: { not_active: INACTIVE },
  })
  async cancel(@CallerParam() caller: Caller, @Param('id') id: string, @DeadlineParam() deadline: Deadline) {
    await this.requests.cancel(caller, id, deadline);
    return { success: true };
  }
}
