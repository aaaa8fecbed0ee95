import { Injectable } from '@nestjs/common';
import { Counter, Histogram } from 'prom-client';
import { Metrics } from '../observability/metrics.js';
import type { Surface } from './answered-by.js';

/** The budgeted stretches of answering a bundle (5.2). */
const RESPONSE_PHASES = ['identity', 'claim', 'delivery'] as const;
export type ResponsePhase = (typeof RESPONSE_PHASES)[number];

const SURFACES: readonly Surface[] = ['rest', 'mcp'];
/** Seconds: from a claim on an idle machine to the whole budget of a hand-over. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** How answers fare. Every series is there from the first scrape, so that a rate over it is right from its first event. */
@Injectable()
export class ResponseMetrics {
  private readonly timeouts: Counter<'phase'>;
  private readonly resolutions: Counter<'outcome' | 'surface'>;
  private readonly lost: Counter<'surface'>;
  private readonly durations: Readonly<Partial<Record<ResponsePhase, Histogram>>>;

  constructor({ registry }: Metrics) {
    const registers = [registry];
    this.timeouts = new Counter({
      name: 'clarification_response_timeout_total',
      help: 'Responses whose budget was spent, by the phase that spent it.',
      labelNames: ['phase'],
      registers,
    });
    this.resolutions = new Counter({
      name: 'clarification_resolutions_total',
      help: 'Bundles resolved: claims that won and were not undone, by outcome and surface.',
      labelNames: ['outcome', 'surface'],
      registers,
    });
    this.lost = new Counter({
      name: 'clarification_lost_responses_total',
      help: "Responses that came after the winner's and were told what it decided, by surface.",
      labelNames: ['surface'],
      registers,
    });
    this.durations = {
      claim: new Histogram({
        name: 'clarification_claim_duration_seconds',
        help: 'How long claims took, whatever came of them.',
        buckets: BUCKETS,
        registers,
      }),
      delivery: new Histogram({
        name: 'clarification_delivery_duration_seconds',
        help: 'How long handing claimed responses over took, whatever came of it.',
        buckets: BUCKETS,
        registers,
      }),
    };
    for (const phase of RESPONSE_PHASES) this.timeouts.inc({ phase }, 0);
    for (const surface of SURFACES) {
      this.lost.inc({ surface }, 0);
      for (const outcome of ['answered', 'rejected']) this.resolutions.inc({ outcome, surface }, 0);
    }
  }

  timedOut(phase: ResponsePhase): void {
    this.timeouts.inc({ phase });
  }

  took(phase: ResponsePhase, milliseconds: number): void {
    this.durations[phase]?.observe(milliseconds / 1000);
  }

  resolved(outcome: 'answered' | 'rejected', surface: Surface): void {
    this.resolutions.inc({ outcome, surface });
  }

  lostTo(surface: Surface): void {
    this.lost.inc({ surface });
  }
}
