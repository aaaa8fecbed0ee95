import { Injectable } from '@nestjs/common';
import { Counter } from 'prom-client';
import { Metrics } from '../../observability/metrics.js';

/** What recovery had to do, at start and once a minute: none of it is expected while nothing fails. */
@Injectable()
export class RecoveryMetrics {
  private readonly bundles: Counter<'outcome'>;
  private readonly turns: Counter;

  constructor({ registry }: Metrics) {
    this.bundles = new Counter({
      name: 'recovery_bundles_total',
      help: 'Claimed bundles that nobody was handing over: restored to pending, or kept as they were answered.',
      labelNames: ['outcome'],
      registers: [registry],
    });
    this.turns = new Counter({
      name: 'recovery_turns_published_total',
      help: 'Reserved turns that recovery published, with their prompt, because their dispatch had been attempted.',
      registers: [registry],
    });
    for (const outcome of ['restored', 'kept']) this.bundles.inc({ outcome }, 0);
  }

  bundle(outcome: 'restored' | 'kept'): void {
    this.bundles.inc({ outcome });
  }

  turnPublished(): void {
    this.turns.inc();
  }
}
