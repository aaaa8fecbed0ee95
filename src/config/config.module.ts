import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { Clock, SystemClock } from '../common/clock.js';
import { Env } from './env.js';

/** Gives everybody the one {@link Env} of this process, and the time. */
@Module({})
export class ConfigModule {
  static forRoot(env: Env): DynamicModule {
    return {
      module: ConfigModule,
      global: true,
      providers: [
        { provide: Env, useValue: env },
        { provide: Clock, useClass: SystemClock },
      ],
      exports: [Env, Clock],
    };
  }
}
