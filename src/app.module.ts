import { Module } from '@nestjs/common';
import type { DynamicModule, OnApplicationBootstrap } from '@nestjs/common';
import { ClarificationModule } from './clarification/clarification.module.js';
import { ConfigModule } from './config/config.module.js';
import type { Env } from './config/env.js';
import { HealthModule } from './health/health.module.js';
import { HttpModule } from './http/http.module.js';
import { IdentityModule } from './identity/identity.module.js';
import { McpModule } from './mcp/mcp.module.js';
import { ObservabilityModule } from './observability/observability.module.js';
import { PersistenceModule } from './persistence/persistence.module.js';
import { StreamModule } from './stream/stream.module.js';
import { TurnDispatcher } from './tasks/resume/turn-dispatcher.js';
import { TasksModule } from './tasks/tasks.module.js';

/** The composition root: the only file that knows every module. */
@Module({})
export class AppModule implements OnApplicationBootstrap {
  constructor(private readonly dispatcher: TurnDispatcher) {}

  /** The last of the modules to start: what an earlier process left is seen to by now, or the start has failed. */
  onApplicationBootstrap(): void {
    this.dispatcher.start();
  }

  static forRoot(env: Env): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ConfigModule.forRoot(env),
        ObservabilityModule,
        PersistenceModule.forRoot(),
        IdentityModule,
        HttpModule,
        HealthModule,
        TasksModule,
        ClarificationModule,
        McpModule,
        StreamModule,
      ],
    };
  }
}
