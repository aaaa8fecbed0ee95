import { Injectable } from '@nestjs/common';
import { collectDefaultMetrics, Registry } from 'prom-client';

/**
 * What `/metrics` shows: Node's own, and what each feature makes on {@link registry}. Pending ids, tasks, sessions and
 * users are never labels: each would make a series of its own (5.3).
 */
@Injectable()
export class Metrics {
  readonly registry = new Registry();

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }
}
