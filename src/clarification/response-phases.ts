import { Injectable } from '@nestjs/common';
import { NotActiveError, NotFoundError, TemporarilyUnavailableError, ValidationError } from '../common/domain-error.js';
import { Log } from '../observability/log.js';
import { Metrics, type ResponsePhase } from '../observability/metrics.js';
import { UnitOfWork } from '../persistence/unit-of-work.js';
import { actorOf, type AnsweredBy } from './answered-by.js';

export type PhaseOutcome = 'ok' | 'lost' | 'not_active' | 'not_found' | 'invalid' | 'timeout' | 'error' | 'restored';

/** One structured record per phase of a response, and the counter of those that ran out of time (5.3). */
@Injectable()
export class ResponsePhases {
  constructor(
    private readonly log: Log,
    private readonly metrics: Metrics,
    private readonly unitOfWork: UnitOfWork,
  ) {}

  /** @param outcomeOf what a result means; `ok` unless said otherwise */
  async run<T>(
    phase: ResponsePhase,
    pendingId: string,
    by: AnsweredBy,
    work: () => Promise<T>,
    outcomeOf: (result: T) => PhaseOutcome = () => 'ok',
  ): Promise<T> {
    const startedAt = performance.now();
    try {
      const result = await work();
      this.record(phase, pendingId, by, startedAt, outcomeOf(result));
      return result;
    } catch (error) {
      const outcome = outcomeOfError(error);
      if (outcome === 'timeout') this.metrics.responseTimedOut(phase);
      this.record(phase, pendingId, by, startedAt, outcome);
      throw error;
    }
  }

  private record(
    phase: ResponsePhase,
    pendingId: string,
    by: AnsweredBy,
    startedAt: number,
    outcome: PhaseOutcome,
  ): void {
    this.log.info('clarification.response.phase', {
      phase,
      outcome,
      duration_ms: Math.round(performance.now() - startedAt),
      driver: this.unitOfWork.dialect.engine,
      pending_id: pendingId,
      actor: actorOf(by.caller),
      surface: by.surface,
    });
  }
}

function outcomeOfError(error: unknown): PhaseOutcome {
  if (error instanceof TemporarilyUnavailableError) return 'timeout';
  if (error instanceof NotFoundError) return 'not_found';
  if (error instanceof ValidationError) return 'invalid';
  if (error instanceof NotActiveError) return 'not_active';
  return 'error';
}
