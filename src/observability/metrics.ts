import { Injectable } from '@nestjs/common';
import { collectDefaultMetrics, Counter, Registry } from 'prom-client';

/** The budgeted stretches of answering a bundle (5.2). */
const RESPONSE_PHASES = ['identity', 'claim', 'delivery'] as const;
export type ResponsePhase = (typeof RESPONSE_PHASES)[number];

/**
 * What `/metrics` shows. Pending ids, tasks, sessions and users are never labels: each would make a series of its own
 * (5.3). A feature makes its metrics on {@link registry}.
 */
@Injectable()
export class Metrics {
  readonly registry = new Registry();

  private readonly responseTimeouts = new Counter({
    name: 'clarification_response_timeout_total',
    help: 'Responses whose budget was spent, by the phase that spent it.',
    labelNames: ['phase'] as const,
    registers: [this.registry],
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    // Present from the first scrape, so that a rate over it is right from the first timeout.
    for (const phase of RESPONSE_PHASES) this.responseTimeouts.inc({ phase }, 0);
  }

  responseTimedOut(phase: ResponsePhase): void {
    this.responseTimeouts.inc({ phase });
  }
}
