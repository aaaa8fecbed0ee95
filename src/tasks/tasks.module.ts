import { Module } from '@nestjs/common';
import { EventsModule } from '../events/events.module.js';
import { TaskAccess } from './authorization/task-access.js';
import { Clarifications } from './clarification.port.js';
import { MessagesController } from './http/messages.controller.js';
import { SessionsController } from './http/sessions.controller.js';
import { TaskAccessPolicies } from './http/task-access.policies.js';
import { TasksController } from './http/tasks.controller.js';
import { WorkspacesController } from './http/workspaces.controller.js';
import { Mailbox } from './mailbox/mailbox.service.js';
import { Messages } from './messages/messages.service.js';
import { PendingActions } from './pending-actions.js';
import { DispatchMetrics } from './resume/dispatch-metrics.js';
import { ResumePort } from './resume/resume.port.js';
import { Connector, SocketConnector } from './resume/webhook/connector.js';
import { DnsResolver, NameResolver } from './resume/webhook/name-resolver.js';
import { WebhookCalls } from './resume/webhook/webhook-calls.js';
import { Sessions } from './sessions/sessions.service.js';
import { Tasks } from './tasks.service.js';
import { TurnDispatcher } from './resume/turn-dispatcher.js';
import { ReservationBarrier } from './turns/reservation-barrier.js';
import { Turns } from './turns/turns.service.js';
import { Workspaces } from './workspaces.service.js';

/** Workspaces, tasks, sessions, turns, messages, and who may reach them. */
@Module({
  imports: [EventsModule],
  controllers: [WorkspacesController, TasksController, SessionsController, MessagesController],
  providers: [
    Clarifications,
    DispatchMetrics,
    Mailbox,
    Messages,
    PendingActions,
    ReservationBarrier,
    Sessions,
    TaskAccess,
    TaskAccessPolicies,
    Tasks,
    TurnDispatcher,
    Turns,
    Workspaces,
    { provide: ResumePort, useClass: WebhookCalls },
    { provide: NameResolver, useClass: DnsResolver },
    { provide: Connector, useClass: SocketConnector },
  ],
  exports: [Clarifications, Messages, PendingActions, ResumePort, TaskAccess, Tasks, TurnDispatcher, Workspaces],
})
export class TasksModule {}
