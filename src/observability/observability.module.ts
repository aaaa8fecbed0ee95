import { Global, Module } from '@nestjs/common';
import { Env } from '../config/env.js';
import { Log } from './log.js';
import { Metrics } from './metrics.js';

@Global()
@Module({
  providers: [
    { provide: Log, useFactory: (env: Env) => new Log({ level: env.logLevel, format: env.logFormat }), inject: [Env] },
    Metrics,
  ],
  exports: [Log, Metrics],
})
export class ObservabilityModule {}
