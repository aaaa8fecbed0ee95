import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ForbiddenError, TooManyRequestsError, UnauthorizedError } from '../../common/domain-error.js';
import { usableId } from '../../common/ids.js';
import { ProblemWriter } from '../../http/problem-writer.js';
import { ResponsePhases } from '../response-phases.js';

/** Express takes any case and a slash at the end. */
const RESPOND = /^\/api\/v1\/clarification\/([^/]+)\/respond\/?$/i;

/**
 * The identity phase of responses over REST that fail before their handler runs: in authentication, in reading the body,
 * in the guards. Foreign, missing and malformed ids come here by one path, at one cost (A3).
 */
@Injectable()
export class RefusedResponses implements OnModuleInit {
  constructor(
    private readonly problems: ProblemWriter,
    private readonly phases: ResponsePhases,
  ) {}

  onModuleInit(): void {
    this.problems.observe((error, request) => {
      const id = request.method === 'POST' ? RESPOND.exec(request.path)?.[1] : undefined;
      if (id === undefined || this.phases.hasRecorded(error) || isNoResponse(error)) return;
      const subject = { pendingId: usableId(id), caller: request.caller, surface: 'rest' } as const;
      this.phases.refused(subject, request.deadline.startedAt, error);
    });
  }
}

/** Whoever may not respond at all, or not now, has not: their requests say nothing about answering. */
function isNoResponse(error: unknown): boolean {
  return error instanceof UnauthorizedError || error instanceof ForbiddenError || error instanceof TooManyRequestsError;
}
