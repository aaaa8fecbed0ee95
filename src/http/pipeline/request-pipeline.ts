import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown } from '@nestjs/common';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import { Env } from '../../config/env.js';
import { Authenticator } from '../../identity/authenticator.js';
import { Log } from '../../observability/log.js';
import { ContractedRoutes } from '../contracted-routes.js';
import { HttpDrain } from '../http-drain.js';
import type { PipelineRequest } from '../pipeline-request.js';
import { LimitMetrics } from '../limit-metrics.js';
import { ProblemWriter } from '../problem-writer.js';
import { checkHostAndOrigin } from './allow-lists.js';
import { Arrivals } from './arrivals.js';
import { authenticate } from './authenticate.js';
import { beginRequest } from './begin-request.js';
import { crossOrigin } from './cross-origin.js';
import { readJsonBody } from './json-body.js';
import { literalPath } from './literal-path.js';
import { RateLimit } from './rate-limit.js';
import { securityHeaders } from './security-headers.js';
import { toMiddleware } from './step.js';
import { unavailableSentences } from './unavailable-sentences.js';

/**
 * What every request passes before it meets a route, REST and MCP alike, in this order: 429 → 401 → 403 (Host, Origin) →
 * 415, 413, 400 (a body that cannot be read) → 429 (a batch). Then the guards: 403 → 404 → 400 → 429 (what is held open); then the
 * handler: 409.
 * Express middleware, because Express would otherwise parse the body before Nest's first guard.
 */
@Injectable()
export class RequestPipeline implements OnApplicationShutdown {
  private readonly rateLimit: RateLimit;

  constructor(
    private readonly env: Env,
    private readonly authenticator: Authenticator,
    private readonly log: Log,
    private readonly problems: ProblemWriter,
    private readonly drain: HttpDrain,
    private readonly routes: ContractedRoutes,
    limits: LimitMetrics,
  ) {
    this.rateLimit = new RateLimit({ perMinute: env.rateLimitPerMinute, perAddress: env.rateLimitPerAddress }, limits);
  }

  middleware(): (RequestHandler | ErrorRequestHandler)[] {
    const { env, log, drain } = this;
    return [
      beginRequest({
        budgetMs: env.preClaimBudgetMs,
        unavailable: unavailableSentences(this.routes.all()),
        log,
        isStopping: () => drain.isStopping,
      }),
      securityHeaders(),
      new Arrivals().middleware,
      crossOrigin(env.corsOrigins),
      toMiddleware(this.rateLimit.around(authenticate(this.authenticator, { metricsAndDocs: env.openMetricsAndDocs }))),
      toMiddleware(checkHostAndOrigin(env)),
      toMiddleware(readJsonBody(env.bodyLimitBytes)),
      toMiddleware(this.rateLimit.batch),
      toMiddleware(literalPath),
      this.refuse,
    ];
  }

  onApplicationShutdown(): void {
    this.rateLimit.close();
  }

  // Express tells an error handler by its four parameters.
  private readonly refuse: ErrorRequestHandler = (error, request, response, _next) => {
    this.problems.write(error, request as PipelineRequest, response);
  };
}
