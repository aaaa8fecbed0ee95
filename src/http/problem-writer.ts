import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { CallerGoneError } from '../common/deadline.js';
import { NotFoundError } from '../common/domain-error.js';
import { untilEvenStep } from '../common/even-refusal.js';
import { Log } from '../observability/log.js';
import type { PipelineRequest } from './pipeline-request.js';
import { toProblem } from './problem.js';

type RefusalObserver = (error: unknown, request: PipelineRequest) => void;

/** Answers with an error, and logs it if it is ours: the one place where REST errors are told and logged. */
@Injectable()
export class ProblemWriter {
  private readonly observers: RefusalObserver[] = [];

  constructor(private readonly log: Log) {}

  /** Tells a feature of every request that fails, wherever it does: in the pipeline, a guard or its handler. */
  observe(observer: RefusalObserver): void {
    this.observers.push(observer);
  }

  write(error: unknown, request: PipelineRequest, response: Response): void {
    for (const observe of this.observers) observe(error, request);
    if (error instanceof CallerGoneError) {
      response.destroy();
      return;
    }
    const problem = toProblem(error, request.requestId);
    this.record(error, problem.status, request);
    if (response.headersSent) {
      // Half an answer cannot be turned into an error any more; a cut connection cannot be taken for a whole one.
      response.destroy();
      return;
    }
    const answer = (): void => {
      // Said here too, because a handler may have named the type of what it was about to answer.
      response.status(problem.status).set({ 'Content-Type': 'application/json; charset=utf-8', ...problem.headers });
      response.json(problem.body);
    };
    if (error instanceof NotFoundError) setTimeout(answer, untilEvenStep(request.deadline.startedAt));
    else answer();
  }

  private record(error: unknown, status: number, request: PipelineRequest): void {
    const fields = { method: request.method, path: request.path.slice(0, 200), status, error };
    if (status === 500) this.log.error('request.failed', fields);
    else if (status === 503) this.log.warn('request.unavailable', fields);
    else if (this.log.debugs) this.log.debug('request.refused', fields);
  }
}
