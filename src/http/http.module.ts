import { Global, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, DiscoveryModule } from '@nestjs/core';
import { AccessPolicies } from './access-policies.js';
import { AccessGuard } from './access.guard.js';
import { ContractedRoutes } from './contracted-routes.js';
import { DomainExceptionFilter } from './domain-exception.filter.js';
import { HeldRequests } from './held-requests.js';
import { HoldGuard } from './hold.guard.js';
import { HttpDrain } from './http-drain.js';
import { InputGuard } from './input.guard.js';
import { LimitMetrics } from './limit-metrics.js';
import { RequestPipeline } from './pipeline/request-pipeline.js';
import { ProblemWriter } from './problem-writer.js';

@Global()
@Module({
  imports: [DiscoveryModule],
  providers: [
    AccessPolicies,
    ContractedRoutes,
    HeldRequests,
    HttpDrain,
    LimitMetrics,
    ProblemWriter,
    RequestPipeline,
    // In this order: 403 and 404 before 400 before 429.
    { provide: APP_GUARD, useClass: AccessGuard },
    { provide: APP_GUARD, useClass: InputGuard },
    { provide: APP_GUARD, useClass: HoldGuard },
    { provide: APP_FILTER, useClass: DomainExceptionFilter },
  ],
  exports: [AccessPolicies, ContractedRoutes, HeldRequests, LimitMetrics, ProblemWriter, RequestPipeline],
})
export class HttpModule {}
