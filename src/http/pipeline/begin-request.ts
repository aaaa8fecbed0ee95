import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';
import { Deadline } from '../../common/deadline.js';
import { End } from '../../common/end-signal.js';
import type { Log } from '../../observability/log.js';
import { runInRequest } from '../../observability/request-context.js';
import type { PipelineRequest } from '../pipeline-request.js';
import type { UnavailableSentence } from './unavailable-sentences.js';

/** Gives the request its id, its budget and the signal of its caller's leaving. */
export function beginRequest(options: {
  budgetMs: number;
  unavailable: UnavailableSentence;
  log: Log;
  isStopping: () => boolean;
}): RequestHandler {
  return (incoming, response, next) => {
    const request = incoming as PipelineRequest;
    const startedAt = performance.now();
    const gone = new End();
    request.requestId = randomUUID();
    request.callerGone = gone;
    const sentence = options.unavailable(request.method, request.path);
    request.deadline = Deadline.after(options.budgetMs, {
      callerGone: gone,
      ...(sentence !== undefined && { message: sentence }),
    });
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
          aborted: gone.aborted,
        });
      });
      next();
    });
  };
}
