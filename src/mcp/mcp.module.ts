import { Module } from '@nestjs/common';
import { ClarificationListing } from '../clarification/clarification-listing.js';
import { ClarificationModule } from '../clarification/clarification.module.js';
import { ClarificationRequests } from '../clarification/clarification-requests.js';
import { ClarificationResolver } from '../clarification/clarification-resolver.js';
import { BundleWait } from '../clarification/delivery/bundle-wait.js';
import { VERSION } from '../common/version.js';
import { Env } from '../config/env.js';
import { CallerLifetime } from '../identity/caller-lifetime.js';
import { Log } from '../observability/log.js';
import { TaskAccess } from '../tasks/authorization/task-access.js';
import { Messages } from '../tasks/messages/messages.service.js';
import { TasksModule } from '../tasks/tasks.module.js';
import { Tasks } from '../tasks/tasks.service.js';
import { Workspaces } from '../tasks/workspaces.service.js';
import { McpController } from './mcp.controller.js';
import { serverIdentities, toolsOf } from './mcp-surfaces.js';
import { McpEndpoint } from './sdk/mcp-endpoint.js';
import { SessionMcpController } from './session-mcp.controller.js';

/** Below the 15 s that clients are promised, with room for a busy event loop. */
const PROGRESS_EVERY_MS = 10_000;

/** Both MCP surfaces over the services that REST calls too. */
@Module({
  imports: [ClarificationModule, TasksModule],
  controllers: [SessionMcpController, McpController],
  providers: [
    {
      provide: McpEndpoint,
      inject: [
        ClarificationResolver,
        ClarificationListing,
        ClarificationRequests,
        BundleWait,
        Tasks,
        Messages,
        TaskAccess,
        Workspaces,
        CallerLifetime,
        Env,
        Log,
      ],
      useFactory: (
        resolver: ClarificationResolver,
        listing: ClarificationListing,
        requests: ClarificationRequests,
        waits: BundleWait,
        tasks: Tasks,
        conversation: Messages,
        access: TaskAccess,
        workspaces: Workspaces,
        lifetime: CallerLifetime,
        env: Env,
        log: Log,
      ) =>
        new McpEndpoint({
          tools: toolsOf({ resolver, listing, requests, waits, tasks, conversation, access, workspaces }),
          servers: serverIdentities(VERSION),
          hold: {
            askHoldMs: env.askHoldMs,
            waitTimeoutMs: env.waitTimeoutMs,
            progressEveryMs: PROGRESS_EVERY_MS,
          },
          watchCaller: (caller, onEnded) => lifetime.watch(caller, onEnded),
          log,
        }),
    },
  ],
})
export class McpModule {}
