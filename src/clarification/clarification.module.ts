import { Module } from '@nestjs/common';
import { TasksModule } from '../tasks/tasks.module.js';
import { BundleAccess } from './bundle-access.js';
import { ClarificationListing } from './clarification-listing.js';
import { ClarificationPortAdapter } from './clarification-port.adapter.js';
import { ClarificationRequests } from './clarification-requests.js';
import { ClarificationResolver } from './clarification-resolver.js';
import { AnswerDispatch } from './delivery/answer-dispatch.js';
import { BundleWait } from './delivery/bundle-wait.js';
import { OutcomeDelivery } from './delivery/outcome-delivery.js';
import { Recovery } from './delivery/recovery.js';
import { WaiterRegistry } from './delivery/waiter-registry.js';
import { BundleAccessPolicy } from './http/bundle-access.policy.js';
import { ClarificationController } from './http/clarification.controller.js';
import { RefusedResponses } from './http/refused-responses.js';
import { RestWait } from './http/rest-wait.js';
import { BundleMetrics } from './bundle-metrics.js';
import { RecoveryMetrics } from './delivery/recovery-metrics.js';
import { ResponseMetrics } from './response-metrics.js';
import { ResponsePhases } from './response-phases.js';

@Module({
  imports: [TasksModule],
  controllers: [ClarificationController],
  providers: [
    AnswerDispatch,
    BundleAccess,
    BundleAccessPolicy,
    BundleMetrics,
    BundleWait,
    ClarificationListing,
    ClarificationPortAdapter,
    ClarificationRequests,
    ClarificationResolver,
    OutcomeDelivery,
    Recovery,
    RecoveryMetrics,
    RefusedResponses,
    ResponseMetrics,
    ResponsePhases,
    RestWait,
    WaiterRegistry,
  ],
  exports: [BundleWait, ClarificationListing, ClarificationRequests, ClarificationResolver],
})
export class ClarificationModule {}
