import { createParamDecorator } from '@nestjs/common';
import type { ExecutionContext } from '@nestjs/common';
import type { OnReply } from '../common/on-reply.js';
import { UnauthorizedError } from '../common/domain-error.js';
import type { Response } from 'express';
import type { PipelineRequest } from './pipeline-request.js';

const requestOf = (context: ExecutionContext) => context.switchToHttp().getRequest<PipelineRequest>();

/** The {@link Caller}. A handler on an open path has none and may not ask. */
export const CallerParam = createParamDecorator((_: unknown, context: ExecutionContext) => {
  const { caller } = requestOf(context);
  if (caller === undefined) throw new UnauthorizedError('an access token is required');
  return caller;
});

/** The {@link Deadline} of the pre-claim budget. */
export const DeadlineParam = createParamDecorator(
  (_: unknown, context: ExecutionContext) => requestOf(context).deadline,
);

/** An {@link EndSignal}: the caller's connection closed before the response was written out. */
export const CallerGoneParam = createParamDecorator(
  (_: unknown, context: ExecutionContext) => requestOf(context).callerGone,
);

/** The {@link OnReply} of the request. */
export const OnReplyParam = createParamDecorator((_: unknown, context: ExecutionContext): OnReply => {
  const response = context.switchToHttp().getResponse<Response>();
  return (listener) => {
    if (response.closed) listener(response.writableFinished);
    else response.once('close', () => listener(response.writableFinished));
  };
});
