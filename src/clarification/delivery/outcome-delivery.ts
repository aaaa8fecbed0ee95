import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { Deadline } from '../../common/deadline.js';
import { InternalError, NotFoundError } from '../../common/domain-error.js';
import { Env } from '../../config/env.js';
import type { DomainEvent } from '../../events/domain-event.js';
import { EventBus } from '../../events/event-bus.js';
import { actorOf, type AnsweredBy } from '../answered-by.js';
import { Log } from '../../observability/log.js';
import { UnitOfWork } from '../../persistence/unit-of-work.js';
import { authorOf } from '../../tasks/authorization/author.js';
import { Clarifications } from '../../tasks/clarification.port.js';
import type { ClaimedBundle } from '../persistence/claim-bundle.tx.js';
import {
  confirmDelivery,
  resumeByPull,
  type Answerer,
  type Finalized,
  type Resumed,
} from '../persistence/finalize-delivery.tx.js';
import { restoreBundle, type Restored } from '../persistence/restore-bundle.tx.js';
import { WaiterRegistry } from './waiter-registry.js';

/**
 * Hands a claimed response over, once (R1, R4), within a budget of its own that does not depend on the responder
 * staying connected:
 *
 *   1. an agent waits              → confirm durably, then wake it
 *   2. nobody waits, a rejection   → clear the intent; the agent is not resumed
 *   3. nobody waits, an answer     → the agent's next turn, in one transaction
 *
 * An agent whose wait has just ended is given a moment to come back before 3. Killed at any line, the rows' intent is
 * what recovery goes by.
 */
@Injectable()
export class OutcomeDelivery {
  private readonly underWay = new Map<string, Promise<void>>();
  private readonly owned = new Map<string, number>();

  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly clock: Clock,
    private readonly waiters: WaiterRegistry,
    private readonly clarifications: Clarifications,
    private readonly events: EventBus,
    private readonly env: Env,
    private readonly log: Log,
  ) {}

  /**
   * Runs a claim and, if it wins, its hand-over as one thing that belongs to this process, so that the reconciliation,
   * which restores what nobody hands over, leaves it alone from before the claim can commit.
   */
  async own<T>(pendingId: string, work: () => Promise<T>): Promise<T> {
    this.owned.set(pendingId, (this.owned.get(pendingId) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const others = (this.owned.get(pendingId) ?? 1) - 1;
      if (others === 0) this.owned.delete(pendingId);
      else this.owned.set(pendingId, others);
    }
  }

  isOwned(pendingId: string): boolean {
    return this.owned.has(pendingId);
  }

  /** Whether a claimed response is being handed over right now. */
  isUnderWay(pendingId: string): boolean {
    return this.underWay.has(pendingId);
  }

  /** Resolves when every started hand-over has ended, for a server that stops. */
  async drain(): Promise<void> {
    await Promise.allSettled(this.underWay.values());
  }

  /**
   * @throws InternalError `retryable: true` when the bundle is answerable again, `false` when the answer is recorded
   * but reached nobody
   */
  async deliver(bundle: ClaimedBundle, by: AnsweredBy): Promise<void> {
    const handOver = this.handOver(bundle, by).finally(() => {
      this.underWay.delete(bundle.pendingId);
      this.waiters.wakeBundle(bundle.pendingId);
    });
    this.underWay.set(
      bundle.pendingId,
      handOver.catch(() => undefined),
    );
    await handOver;
  }

  private async handOver(bundle: ClaimedBundle, by: AnsweredBy): Promise<void> {
    const deadline = Deadline.after(this.env.deliveryBudgetMs, {
      message: 'the answer could not be handed over in time',
    });
    let result: Finalized | Resumed;
    try {
      result = await this.settle(bundle, authorOf(by.caller, 'user'), deadline);
    } catch (error) {
      result = await this.restoreAfter(error, bundle);
    }
    switch (result.kind) {
      case 'handed-over':
        this.events.publish([...result.events, resolved(bundle, by)]);
        return;
      case 'too-late':
        this.events.publish(result.events);
        throw new InternalError('the answer is recorded but its session has moved on; send it as a message instead', {
          retryable: false,
        });
      case 'not-ours':
        throw new NotFoundError('clarification request not found');
    }
  }

  private async settle(bundle: ClaimedBundle, answerer: Answerer, deadline: Deadline): Promise<Finalized | Resumed> {
    if (bundle.status === 'answered' && !this.waiters.hasAgent(bundle.pendingId)) {
      const grace = this.waiters.returnExpectedWithin(bundle.pendingId);
      if (grace > 0) await this.waiters.agentArrival(bundle.pendingId, Math.min(grace, deadline.remainingMs / 2));
    }
    const isLive = (): boolean => this.waiters.hasAgent(bundle.pendingId);
    if (!isLive() && bundle.status === 'answered') {
      return this.unitOfWork.run('delivery.resume', deadline, (tx) =>
        resumeByPull(tx, bundle, answerer, this.clock.now()),
      );
    }
    const result = await this.unitOfWork.run('delivery.confirm', deadline, (tx) =>
      confirmDelivery(tx, bundle, isLive() ? 'waiter' : 'nobody', answerer, this.clarifications.port, this.clock.now()),
    );
    if (result.kind === 'handed-over') {
      for (const waiter of this.waiters.agentsOf(bundle.pendingId)) waiter.hand(bundle.response);
    }
    return result;
  }

  /**
   * The hand-over failed. Its transaction changed nothing, unless its COMMIT got no reply: then the rows are settled.
   * @throws InternalError `retryable: true`
   */
  private async restoreAfter(error: unknown, bundle: ClaimedBundle): Promise<Finalized | Resumed> {
    this.log.warn('delivery.failed', { error, pending_id: bundle.pendingId });
    let restored: Restored;
    try {
      restored = await this.unitOfWork.run('delivery.restore', Deadline.after(this.env.deliveryBudgetMs), (tx) =>
        restoreBundle(
          tx,
          { pendingId: bundle.pendingId, sessionId: bundle.sessionId, rowIds: bundle.claimedRowIds },
          this.clock.now(),
        ),
      );
    } catch (restoreError) {
      // The intent is still in the rows: the reconciliation that runs once a minute tries again.
      this.log.error('delivery.restore_failed', { error: restoreError, pending_id: bundle.pendingId });
      throw retryable(error);
    }
    if (restored.kind === 'settled') return { kind: 'handed-over', events: [] };
    if (restored.kind === 'kept') return { kind: 'too-late', events: restored.events };
    this.events.publish(restored.events);
    throw retryable(error);
  }
}

function retryable(cause: unknown): InternalError {
  return new InternalError('the answer could not be handed over; the request can be answered again', {
    cause,
    retryable: true,
  });
}

function resolved(bundle: ClaimedBundle, by: AnsweredBy): DomainEvent {
  return {
    type: 'clarification.resolved',
    taskId: bundle.taskId,
    sessionId: bundle.sessionId,
    pendingId: bundle.pendingId,
    status: bundle.status,
    actor: actorOf(by.caller),
    surface: by.surface,
  };
}
