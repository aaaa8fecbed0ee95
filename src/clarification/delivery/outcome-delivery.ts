import { Injectable } from '@nestjs/common';
import { Clock, laterOf, plusMilliseconds, type Instant } from '../../common/clock.js';
import { Deadline } from '../../common/deadline.js';
import { InternalError } from '../../common/domain-error.js';
import { newRowId } from '../../common/row-id.js';
import { Env } from '../../config/env.js';
import type { DomainEvent } from '../../events/domain-event.js';
import { EventBus } from '../../events/event-bus.js';
import { actorOf, type AnsweredBy } from '../answered-by.js';
import { bundleNotFound } from '../domain/bundle-errors.js';
import { Log } from '../../observability/log.js';
import { UnitOfWork, type Tx } from '../../persistence/unit-of-work.js';
import { whileAway } from '../../persistence/while-away.js';
import { authorOf } from '../../tasks/authorization/author.js';
import { Clarifications } from '../../tasks/clarification.port.js';
import type { ClaimedBundle } from '../persistence/claim-bundle.tx.js';
import type { Answerer } from '../persistence/claimed-rows.js';
import type { ReservedAnswer } from '../persistence/dispatch-answer.tx.js';
import {
  confirmDelivery,
  reopenHandOver,
  resumeAgent,
  type Finalized,
  type HandedOverTo,
  type Reserved,
} from '../persistence/finalize-delivery.tx.js';
import type { Restored } from '../persistence/restore-bundle.tx.js';
import { AnswerDispatch } from './answer-dispatch.js';
import { ReplyWatch } from './reply-watch.js';
import { WaiterRegistry } from './waiter-registry.js';

/**
 * Hands a claimed response over, once (R1, R4), within a budget of its own that does not depend on the responder
 * staying connected:
 *
 *   1. an agent waits              → confirm durably, then wake it
 *   2. nobody waits, a rejection   → clear the intent; the agent is not resumed
 *   3. nobody waits, an answer     → the agent's next turn: in one transaction, or by calling it (AnswerDispatch)
 *
 * An agent whose wait has just ended is given a moment to come back before 3, and when every agent that took a response
 * over is gone before it was written out, 3 follows. Killed at any line, the rows' intent is what recovery goes by.
 */
@Injectable()
export class OutcomeDelivery {
  private readonly underWay = new Map<string, Promise<void>>();
  private readonly owned = new Map<string, { claims: number; lastInstant: Instant }>();
  private readonly replies = new ReplyWatch();

  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly clock: Clock,
    private readonly waiters: WaiterRegistry,
    private readonly dispatches: AnswerDispatch,
    private readonly clarifications: Clarifications,
    private readonly events: EventBus,
    private readonly env: Env,
    private readonly log: Log,
  ) {}

  /**
   * Runs a claim and, if it wins, its hand-over as one thing that belongs to this process, so that the reconciliation,
   * which restores what nobody hands over, leaves it alone from before the claim can commit.
   *
   * @param work gets the instant of the claim, which no other claim of this bundle under way shares: a COMMIT without
   * a reply is known again by it
   */
  async own<T>(pendingId: string, work: (now: Instant) => Promise<T>): Promise<T> {
    const owners = this.owned.get(pendingId) ?? { claims: 0, lastInstant: '' };
    const now = this.clock.now();
    owners.claims += 1;
    owners.lastInstant = owners.lastInstant === '' ? now : laterOf(now, plusMilliseconds(owners.lastInstant, 1));
    this.owned.set(pendingId, owners);
    try {
      return await work(owners.lastInstant);
    } finally {
      owners.claims -= 1;
      if (owners.claims === 0) this.owned.delete(pendingId);
    }
  }

  isOwned(pendingId: string): boolean {
    return this.owned.has(pendingId);
  }

  /** Whether a claimed response is being handed over right now. */
  isUnderWay(pendingId: string): boolean {
    return this.underWay.has(pendingId);
  }

  /**
   * A further wait of the bundle's agent is about to return its response, which others may not have got out.
   * @returns to be told whether that one has got out
   */
  alsoTaken(pendingId: string): (written: boolean) => void {
    return this.replies.join(pendingId);
  }

  /** Resolves when every started hand-over has ended, for a server that stops. */
  async drain(): Promise<void> {
    await Promise.allSettled(this.underWay.values());
  }

  /**
   * @returns false when the answer was sent to the agent and nobody knows yet whether it has arrived (g)
   * @throws InternalError `retryable: true` when the bundle is answerable again, `false` when the answer is recorded
   * but reached nobody, or reached the agent and could not be written down
   */
  async deliver(bundle: ClaimedBundle, by: AnsweredBy): Promise<boolean> {
    return this.track(bundle.pendingId, this.handOver(bundle, by));
  }

  private async track<T>(pendingId: string, handOver: Promise<T>): Promise<T> {
    const ended = handOver.then(
      () => undefined,
      () => undefined,
    );
    this.underWay.set(pendingId, ended);
    try {
      return await handOver;
    } finally {
      // A restored bundle may have been claimed again, and its next hand-over begun, before this one has ended.
      if (this.underWay.get(pendingId) === ended) this.underWay.delete(pendingId);
      this.waiters.wakeBundle(pendingId);
    }
  }

  private async handOver(bundle: ClaimedBundle, by: AnsweredBy): Promise<boolean> {
    const job = handOverOf(bundle, authorOf(by.caller, 'user'), false);
    const settled = await this.settle(job);
    const result = await this.conclude(settled, job);
    switch (result.kind) {
      case 'handed-over':
      case 'unconfirmed':
        this.events.publish([...result.events, resolved(bundle, by)]);
        return result.kind === 'handed-over';
      case 'too-late':
        this.events.publish(result.events);
        throw new InternalError('the answer is recorded but its session has moved on; send it as a message instead', {
          retryable: false,
        });
      case 'not-ours':
        throw bundleNotFound();
    }
  }

  /**
   * Gives the response to whoever waits, before anything is published: that makes waiters read the rows, where the
   * reason of a rejection is not. When the agents it was confirmed for have gone by now, hands it over once more.
   */
  private async conclude(first: Finalized, job: HandOver): Promise<Finalized> {
    let result = first;
    const before: DomainEvent[] = [];
    while (result.kind === 'handed-over' && !this.hand(result.to, job)) {
      before.push(...result.events);
      result = await this.settleAgain(job);
    }
    return result.kind === 'not-ours' ? result : { ...result, events: [...before, ...result.events] };
  }

  private async settle(job: HandOver): Promise<Finalized> {
    const { bundle } = job;
    const deadline = Deadline.after(this.env.deliveryBudgetMs, {
      message: 'the answer could not be handed over in time',
    });
    if (bundle.status === 'answered' && !this.waiters.hasAgent(bundle.pendingId)) {
      const grace = this.waiters.returnExpectedWithin(bundle.pendingId);
      if (grace > 0) await this.waiters.agentArrival(bundle.pendingId, Math.min(grace, deadline.remainingMs / 2));
    }
    let begun: Finalized | Reserved;
    try {
      begun = await this.unitOfWork.run('delivery.hand-over', deadline, (tx) => this.settleIn(tx, job));
    } catch (error) {
      return this.restoreAfter(error, job);
    }
    return this.dispatched(begun, job, deadline);
  }

  /** Which way it goes is decided under the session's lock: an agent may have come or gone until then. */
  private settleIn(tx: Tx, { bundle, answerer, reserved }: HandOver): Promise<Finalized | Reserved> {
    const now = this.clock.now();
    const isLive = this.waiters.hasAgent(bundle.pendingId);
    if (bundle.status === 'answered' && !isLive) return resumeAgent(tx, bundle, answerer, reserved.turnId, now);
    return confirmDelivery(tx, bundle, isLive ? 'waiter' : 'nobody', answerer, this.clarifications.port, now);
  }

  /** Calls the agent, if that is how the hand-over goes on. */
  private async dispatched(begun: Finalized | Reserved, job: HandOver, deadline: Deadline): Promise<Finalized> {
    const { bundle, reserved } = job;
    const isLive = (): boolean => this.waiters.hasAgent(bundle.pendingId);
    let result = begun;
    while (result.kind === 'reserved') {
      const otherwise = (tx: Tx): Promise<Finalized | Reserved> => this.settleIn(tx, job);
      const dispatch = await this.dispatches.dispatch(reserved, bundle, isLive, otherwise, deadline);
      if (dispatch.kind === 'not-delivered') {
        // An answer that was said to be delivered is not taken back, but sent until it is.
        return job.isTold ? this.dispatches.leaveOpen(reserved) : this.restoreAfter(dispatch.cause, job);
      }
      result = dispatch;
    }
    return result;
  }

  /** @throws InternalError `retryable: false`: the answer is recorded, and a repeated wait returns it */
  private async settleAgain(job: HandOver): Promise<Finalized> {
    const { bundle } = job;
    this.log.warn('delivery.lost', { pending_id: bundle.pendingId });
    const deadline = Deadline.after(this.env.deliveryBudgetMs);
    let begun: Finalized | Reserved;
    try {
      begun = await whileAway(deadline, () =>
        this.unitOfWork.run(
          'delivery.hand-over-again',
          deadline,
          async (tx): Promise<Finalized | Reserved> => (await reopenHandOver(tx, bundle)) ?? this.settleIn(tx, job),
        ),
      );
    } catch (cause) {
      throw new InternalError('the answer is recorded but could not be handed over', { cause, retryable: false });
    }
    return this.dispatched(begun, job, deadline);
  }

  /** @returns false when the response was confirmed for an agent and none is left to take it */
  private hand(to: HandedOverTo, job: HandOver): boolean {
    const { bundle } = job;
    // Whoever waits for an answer that is in the agent's next turn reads which turn that is from the rows.
    if (to === 'turn' || (to === 'settled' && bundle.status === 'answered')) return true;
    const waiters = this.waiters.of(bundle.pendingId);
    for (const waiter of waiters) waiter.hand(bundle);
    if (bundle.status === 'rejected') return true;
    const agents = waiters.filter((waiter) => waiter.role === 'agent');
    if (agents.length === 0) return false;
    this.replies.follow(
      bundle.pendingId,
      agents.map((agent) => agent.onReply),
      () => this.resumeLost(job),
    );
    return true;
  }

  /** No agent's connection has carried the response out: path 3 after all, in the background. */
  private resumeLost({ bundle, answerer }: HandOver): void {
    const { pendingId } = bundle;
    const job = handOverOf(bundle, answerer, true);
    const resume = async (): Promise<void> => {
      const result = await this.conclude(await this.settleAgain(job), job);
      if (result.kind !== 'not-ours') this.events.publish(result.events);
    };
    this.own(pendingId, () => this.track(pendingId, resume())).catch((error: unknown) => {
      this.log.error('delivery.resume_failed', { error, pending_id: pendingId });
    });
  }

  /**
   * The hand-over failed and is known not to have reached anybody. Its transaction changed nothing, unless its COMMIT
   * got no reply: then the rows are settled.
   * @throws InternalError `retryable: true`
   */
  private async restoreAfter(error: unknown, { bundle, reserved }: HandOver): Promise<Finalized> {
    this.log.warn('delivery.failed', { error, pending_id: bundle.pendingId });
    let restored: Restored | undefined;
    try {
      restored = await this.dispatches.withdraw(reserved);
    } catch (restoreError) {
      // The intent is still in the rows: the reconciliation that runs once a minute tries again.
      this.log.error('delivery.restore_failed', { error: restoreError, pending_id: bundle.pendingId });
      throw retryable(error);
    }
    switch (restored?.kind) {
      case undefined:
        return this.dispatches.leaveOpen(reserved);
      case 'settled':
        return { kind: 'handed-over', to: 'settled', events: restored.events };
      case 'gone':
        return { kind: 'not-ours' };
      case 'kept':
        return { kind: 'too-late', events: restored.events };
      case 'restored':
        this.events.publish(restored.events);
        throw retryable(error);
    }
  }
}

/** One claimed bundle on its way, and the turn that may be reserved for it. */
interface HandOver {
  readonly bundle: ClaimedBundle;
  readonly answerer: Answerer;
  readonly reserved: ReservedAnswer;
  /** Whether the responder has heard that the answer is delivered. */
  readonly isTold: boolean;
}

function handOverOf(bundle: ClaimedBundle, answerer: Answerer, isTold: boolean): HandOver {
  const { pendingId, sessionId, claimedRowIds: rowIds } = bundle;
  return { bundle, answerer, isTold, reserved: { turnId: newRowId(), sessionId, pendingId, rowIds } };
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
