import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { Deadline } from '../../common/deadline.js';
import { InternalError } from '../../common/domain-error.js';
import { End } from '../../common/end-signal.js';
import { Env } from '../../config/env.js';
import { Log } from '../../observability/log.js';
import { UnitOfWork, type Tx } from '../../persistence/unit-of-work.js';
import { whileAway } from '../../persistence/while-away.js';
import { Clarifications } from '../../tasks/clarification.port.js';
import { lockSession } from '../../tasks/persistence/sessions.repository.js';
import { ResumePort, type AgentCall } from '../../tasks/resume/resume.port.js';
import type { ClaimedBundle } from '../persistence/claim-bundle.tx.js';
import {
  attemptDispatch,
  dropReservation,
  FIRST_PAUSE_MS,
  publishAnswer,
  withdrawAnswer,
  type Published,
  type ReservedAnswer,
} from '../persistence/dispatch-answer.tx.js';
import type { Finalized, Reserved } from '../persistence/finalize-delivery.tx.js';
import type { Restored } from '../persistence/restore-bundle.tx.js';

type Attempt = Finalized | Reserved | { readonly kind: 'attempted'; readonly call: AgentCall };

/** What a dispatch came to. `not-delivered`: the reservation, if any, still stands and nobody has been reached. */
export type Dispatch = Finalized | Reserved | { readonly kind: 'not-delivered'; readonly cause: unknown };

/** What this process knows of a call whose consequence it could not write down. */
export type CallMemory = 'accepted' | 'not-delivered';

/**
 * Hands an answer over by calling its agent, once a turn is reserved for it: attempt, call, publish. What a call came
 * to is kept in memory until it is in the rows, so that the reconciliation, which sees only a turn that was attempted,
 * does better than a restart would.
 */
@Injectable()
export class AnswerDispatch implements OnModuleDestroy {
  private readonly memory = new Map<string, CallMemory>();
  private readonly stopping = new End();

  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly clock: Clock,
    private readonly port: ResumePort,
    private readonly clarifications: Clarifications,
    private readonly env: Env,
    private readonly log: Log,
  ) {}

  /** A call may take longer than a shutdown: what it came to is then unknown. */
  onModuleDestroy(): void {
    this.stopping.abort();
  }

  remembered(turnId: string): CallMemory | undefined {
    return this.memory.get(turnId);
  }

  forget(turnId: string): void {
    this.memory.delete(turnId);
  }

  /**
   * (b) to (d), (f) and (g).
   * @param isLive whether an agent waits by now, which makes the call needless; asked under the session's lock
   * @param otherwise hands over in another way, in the same transaction, when the call is no longer the way
   * @throws InternalError `retryable: false` when the agent has accepted and that could not be written down (f)
   */
  async dispatch(
    answer: ReservedAnswer,
    bundle: ClaimedBundle,
    isLive: () => boolean,
    otherwise: (tx: Tx) => Promise<Finalized | Reserved>,
    deadline: Deadline,
  ): Promise<Dispatch> {
    let attempt: Attempt;
    try {
      attempt = await this.unitOfWork.run('delivery.attempt', deadline, async (tx): Promise<Attempt> => {
        await lockSession(tx, answer.sessionId);
        const call = isLive() ? undefined : await attemptDispatch(tx, bundle, answer.turnId, this.clock.now());
        if (call !== undefined) return { kind: 'attempted', call };
        await dropReservation(tx, answer);
        return otherwise(tx);
      });
    } catch (cause) {
      return { kind: 'not-delivered', cause };
    }
    if (attempt.kind !== 'attempted') return attempt;
    const result = await this.port.call(attempt.call, deadline, this.stopping);
    if (result.kind !== 'accepted') {
      this.log.warn('webhook.failed', {
        turn_id: answer.turnId,
        pending_id: answer.pendingId,
        outcome: result.kind,
        reason: result.reason,
      });
    }
    switch (result.kind) {
      case 'accepted':
        return this.conclude(answer);
      case 'unknown':
        return this.leaveOpen(answer);
      case 'not-delivered':
        return { kind: 'not-delivered', cause: new Error(`the agent could not be reached: ${result.reason}`) };
    }
  }

  /** (d) */
  private async conclude(answer: ReservedAnswer): Promise<Finalized> {
    this.memory.set(answer.turnId, 'accepted');
    try {
      return { kind: 'handed-over', to: 'turn', events: (await this.publish(answer, true)).events };
    } catch (cause) {
      this.log.error('delivery.publish_failed', { error: cause, turn_id: answer.turnId, pending_id: answer.pendingId });
      throw new InternalError('the answer has reached the agent, but its turn could not be recorded yet', {
        cause,
        retryable: false,
      });
    }
  }

  /** (g): whatever fails here, the reconciliation does the same later. */
  async leaveOpen(answer: ReservedAnswer): Promise<Finalized> {
    try {
      return { kind: 'unconfirmed', events: (await this.publish(answer, false)).events };
    } catch (error) {
      this.log.error('delivery.publish_failed', { error, turn_id: answer.turnId, pending_id: answer.pendingId });
      return { kind: 'unconfirmed', events: [] };
    }
  }

  /** (e) @returns undefined when the agent has written into the turn, so that it cannot be taken back */
  async withdraw(answer: ReservedAnswer): Promise<Restored | undefined> {
    this.memory.set(answer.turnId, 'not-delivered');
    // A budget of its own, small enough for the responder to hear within its 40 s.
    const budget = Deadline.after(this.env.preClaimBudgetMs);
    const restored = await whileAway(budget, () =>
      this.unitOfWork.run('delivery.restore', budget, (tx) =>
        withdrawAnswer(tx, answer, this.clarifications.port, this.clock.now()),
      ),
    );
    this.memory.delete(answer.turnId);
    return restored;
  }

  private async publish(answer: ReservedAnswer, isAccepted: boolean): Promise<Published> {
    const budget = Deadline.after(this.env.preClaimBudgetMs);
    const how = { isAccepted, isAnnounced: true, pauseMs: FIRST_PAUSE_MS };
    const published = await whileAway(budget, () =>
      this.unitOfWork.run('delivery.publish', budget, (tx) =>
        publishAnswer(tx, answer, how, this.clarifications.port, this.clock.now()),
      ),
    );
    this.memory.delete(answer.turnId);
    return published;
  }
}
