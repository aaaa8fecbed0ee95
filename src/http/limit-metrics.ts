import { Injectable } from '@nestjs/common';
import { Counter } from 'prom-client';
import { Metrics } from '../observability/metrics.js';

/** Which limit somebody has come to. */
export type Limit = 'token' | 'address' | 'stranger' | 'held_caller' | 'held_address' | 'held' | 'connections';

/** What an operator sees of the limits: a refusal is logged at debug level only, because a storm of them must stay cheap. */
@Injectable()
export class LimitMetrics {
  private readonly counter: Counter<'limit'>;

  constructor(metrics: Metrics) {
    this.counter = new Counter({
      name: 'requests_refused_total',
      help: 'Requests and connections refused because of a limit, by which.',
      labelNames: ['limit'],
      registers: [metrics.registry],
    });
  }

  refused(limit: Limit): void {
    this.counter.inc({ limit });
  }
}
