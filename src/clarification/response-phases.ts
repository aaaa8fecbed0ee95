import { Injectable } from '@nestjs/common';
import {
  InternalError,
  NotActiveError,
  NotFoundError,
  PayloadTooLargeError,
  TemporarilyUnavailableError,
  UnsupportedMediaTypeError,
  ValidationError,
} from '../common/domain-error.js';
import type { Caller } from '../identity/caller.js';
import { Log } from '../observability/log.js';
import { UnitOfWork } from '../persistence/unit-of-work.js';
import { actorOf, type AnsweredBy, type Surface } from './answered-by.js';
import { ResponseMetrics, type ResponsePhase } from './response-metrics.js';

export type PhaseOutcome = 'ok' | 'lost' | 'not_active' | 'not_found' | 'invalid' | 'timeout' | 'error' | 'restored';

/** What a record is about. */
interface Subject {
  readonly pendingId: string;
  /** Undefined where who it is could not be found out in time. */
  readonly caller: Caller | undefined;
  readonly surface: Surface;
}

/**
 * One structured record per phase of a response, and what is counted of it (5.3). A response ends in the first phase
 * that fails, so its last record says what came of it.
 */
@Injectable()
export class ResponsePhases {
  private readonly recorded = new WeakSet<object>();

  constructor(
    private readonly log: Log,
    private readonly metrics: ResponseMetrics,
    private readonly unitOfWork: UnitOfWork,
  ) {}

  /**
   * Who asks, about which bundle, and whether what they say is valid.
   * @param startedAt when the request's budget began: authentication and the guard belong to this phase
   */
  identity<T>(pendingId: string, by: AnsweredBy, startedAt: number, work: () => Promise<T>): Promise<T> {
    return this.run('identity', { pendingId, ...by }, startedAt, work, () => 'ok');
  }

  /** @param work also tells a loser who won */
  async claim<T extends { readonly kind: 'claimed' | 'lost' }>(
    pendingId: string,
    by: AnsweredBy,
    work: () => Promise<T>,
  ): Promise<T> {
    const claim = await this.run('claim', { pendingId, ...by }, performance.now(), work, ({ kind }) =>
      kind === 'claimed' ? 'ok' : 'lost',
    );
    if (claim.kind === 'lost') this.metrics.lostTo(by.surface);
    return claim;
  }

  /** Counts the resolution too, unless the claim was undone, or its bundle deleted. */
  async delivery<T>(
    bundle: { readonly pendingId: string; readonly status: 'answered' | 'rejected' },
    by: AnsweredBy,
    work: () => Promise<T>,
  ): Promise<T> {
    let isResolved = true;
    try {
      return await this.run('delivery', { pendingId: bundle.pendingId, ...by }, performance.now(), work, () => 'ok');
    } catch (error) {
      isResolved = !isAnswerableAgain(error) && !(error instanceof NotFoundError);
      throw error;
    } finally {
      if (isResolved) this.metrics.resolved(bundle.status, by.surface);
    }
  }

  /** A response that was refused before it came to {@link identity}. */
  refused(subject: Subject, startedAt: number, error: unknown): void {
    this.failed('identity', subject, startedAt, error);
  }

  /** Whether the failure has come through one of the phases, and so is in a record. */
  hasRecorded(error: unknown): boolean {
    return typeof error === 'object' && error !== null && this.recorded.has(error);
  }

  private async run<T>(
    phase: ResponsePhase,
    subject: Subject,
    startedAt: number,
    work: () => Promise<T>,
    outcomeOf: (result: T) => PhaseOutcome,
  ): Promise<T> {
    try {
      const result = await work();
      this.record(phase, subject, startedAt, outcomeOf(result));
      return result;
    } catch (error) {
      this.failed(phase, subject, startedAt, error);
      throw error;
    }
  }

  private failed(phase: ResponsePhase, subject: Subject, startedAt: number, error: unknown): void {
    if (typeof error === 'object' && error !== null) this.recorded.add(error);
    if (isTimeout(error)) this.metrics.timedOut(phase);
    const isRestored = phase === 'delivery' && isAnswerableAgain(error);
    this.record(phase, subject, startedAt, isRestored ? 'restored' : outcomeOfError(error));
  }

  private record(phase: ResponsePhase, subject: Subject, startedAt: number, outcome: PhaseOutcome): void {
    const duration = performance.now() - startedAt;
    this.metrics.took(phase, duration);
    this.log.info('clarification.response.phase', {
      phase,
      outcome,
      duration_ms: Math.round(duration),
      driver: this.unitOfWork.dialect.engine,
      pending_id: subject.pendingId,
      actor: subject.caller === undefined ? 'unknown' : actorOf(subject.caller),
      surface: subject.surface,
    });
  }
}

/** The hand-over failed and the bundle is open again, or will be when it has been reconciled. */
function isAnswerableAgain(error: unknown): boolean {
  return error instanceof InternalError && error.retryable === true;
}

/** Also a failed hand-over whose cause is that its budget was spent. */
function isTimeout(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (each instanceof TemporarilyUnavailableError) return true;
  }
  return false;
}

function outcomeOfError(error: unknown): PhaseOutcome {
  if (isTimeout(error)) return 'timeout';
  if (error instanceof NotFoundError) return 'not_found';
  if (error instanceof NotActiveError) return 'not_active';
  const isInvalid =
    error instanceof ValidationError ||
    error instanceof PayloadTooLargeError ||
    error instanceof UnsupportedMediaTypeError;
  return isInvalid ? 'invalid' : 'error';
}
