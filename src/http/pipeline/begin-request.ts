import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';
import { Deadline } from '../../common/deadline.js';
import type { Log } from '../../observability/log.js';
import { runInRequest } from '../../observability/request-context.js';
import type { PipelineRequest } from '../pipeline-request.js';

/** Gives the request its id, its budget and the signal of its caller's leaving. */
export function beginRequest(options: { budgetMs: number; log: Log; isStopping: () => boolean }): RequestHandler {
  return (incoming, response, next) => {
    const request = incoming as PipelineRequest;
    const startedAt = performance.now();
    const gone = new AbortController();
    request.requestId = randomUUID();
    request.callerGone = gone.signal;
    request.deadline = Deadline.after(options.budgetMs, { callerGone: gone.signal });
    response.setHeader('X-Request-Id', request.requestId);
    if (options.isStopping()) response.setHeader('Connection', 'close');
    runInRequest({ requestId: request.requestId }, () => {
      response.once('close', () => {
        if (!response.writableFinished) gone.abort();
        if (!options.log.debugs) return;
        options.log.debug('request.finished', {
          method: request.method,
          path: request.path.slice(0, 200),
          status: response.statusCode,
          duration_ms: Math.round(performance.now() - startedAt),
          caller: request.caller?.kind ?? 'none',
          aborted: gone.signal.aborted,
        });
      });
      next();
    });
  };
}
