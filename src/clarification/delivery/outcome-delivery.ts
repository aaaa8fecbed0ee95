import { Injectable } from '@nestjs/common';
import { Clock, laterOf, plusMilliseconds, type Instant } from '../../common/clock.js';
import { Deadline } from '../../common/deadline.js';
import { InternalError } from '../../common/domain-error.js';
import { Env } from '../../config/env.js';
import type { DomainEvent } from '../../events/domain-event.js';
import { EventBus } from '../../events/event-bus.js';
import { actorOf, type AnsweredBy } from '../answered-by.js';
import { bundleNotFound } from '../domain/bundle-errors.js';
import { Log } from '../../observability/log.js';
import { UnitOfWork, type Tx } from '../../persistence/unit-of-work.js';
import { authorOf } from '../../tasks/authorization/author.js';
import { Clarifications } from '../../tasks/clarification.port.js';
import type { ClaimedBundle } from '../persistence/claim-bundle.tx.js';
import {
  confirmDelivery,
  reopenHandOver,
  resumeByPull,
  type Answerer,
  type Finalized,
  type HandedOverTo,
} from '../persistence/finalize-delivery.tx.js';
import { restoreBundle, type Restored } from '../persistence/restore-bundle.tx.js';
import { ReplyWatch } from './reply-watch.js';
import { WaiterRegistry } from './waiter-registry.js';

/**
 * Hands a claimed response over, once (R1, R4), within a budget of its own that does not depend on the responder
 * staying connected:
 *
 *   1. an agent waits              → confirm durably, then wake it
 *   2. nobody waits, a rejection   → clear the intent; the agent is not resumed
 *   3. nobody waits, an answer     → the agent's next turn, in one transaction
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
   * @throws InternalError `retryable: true` when the bundle is answerable again, `false` when the answer is recorded
   * but reached nobody
   */
  async deliver(bundle: ClaimedBundle, by: AnsweredBy): Promise<void> {
    await this.track(bundle.pendingId, this.handOver(bundle, by));
  }

  private async track(pendingId: string, handOver: Promise<void>): Promise<void> {
    const ended = handOver.catch(() => undefined);
    this.underWay.set(pendingId, ended);
    try {
      await handOver;
    } finally {
      // A restored bundle may have been claimed again, and its next hand-over begun, before this one has ended.
      if (this.underWay.get(pendingId) === ended) this.underWay.delete(pendingId);
      this.waiters.wakeBundle(pendingId);
    }
  }

  private async handOver(bundle: ClaimedBundle, by: AnsweredBy): Promise<void> {
    const answerer = authorOf(by.caller, 'user');
    const deadline = Deadline.after(this.env.deliveryBudgetMs, {
      message: 'the answer could not be handed over in time',
    });
    let result: Finalized;
    try {
      result = await this.settle(bundle, answerer, deadline);
    } catch (error) {
      result = await this.restoreAfter(error, bundle);
    }
    result = await this.conclude(result, bundle, answerer);
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
        throw bundleNotFound();
    }
  }

  /**
   * Gives the response to whoever waits, before anything is published: that makes waiters read the rows, where the
   * reason of a rejection is not. When the agents it was confirmed for have gone by now, hands it over once more.
   */
  private async conclude(first: Finalized, bundle: ClaimedBundle, answerer: Answerer): Promise<Finalized> {
    let result = first;
    const before: DomainEvent[] = [];
    while (result.kind === 'handed-over' && !this.hand(result.to, bundle, answerer)) {
      before.push(...result.events);
      result = await this.settleAgain(bundle, answerer);
    }
    return result.kind === 'not-ours' ? result : { ...result, events: [...before, ...result.events] };
  }

  private async settle(bundle: ClaimedBundle, answerer: Answerer, deadline: Deadline): Promise<Finalized> {
    if (bundle.status === 'answered' && !this.waiters.hasAgent(bundle.pendingId)) {
      const grace = this.waiters.returnExpectedWithin(bundle.pendingId);
      if (grace > 0) await this.waiters.agentArrival(bundle.pendingId, Math.min(grace, deadline.remainingMs / 2));
    }
    return this.unitOfWork.run('delivery.hand-over', deadline, (tx) => this.settleIn(tx, bundle, answerer));
  }

  /** Which way it goes is decided under the session's lock: an agent may have come or gone until then. */
  private settleIn(tx: Tx, bundle: ClaimedBundle, answerer: Answerer): Promise<Finalized> {
    const now = this.clock.now();
    const isLive = this.waiters.hasAgent(bundle.pendingId);
    if (bundle.status === 'answered' && !isLive) return resumeByPull(tx, bundle, answerer, now);
    return confirmDelivery(tx, bundle, isLive ? 'waiter' : 'nobody', answerer, this.clarifications.port, now);
  }

  /** @throws InternalError `retryable: false`: the answer is recorded, and a repeated wait returns it */
  private async settleAgain(bundle: ClaimedBundle, answerer: Answerer): Promise<Finalized> {
    this.log.warn('delivery.lost', { pending_id: bundle.pendingId });
    try {
      return await this.unitOfWork.run(
        'delivery.hand-over-again',
        Deadline.after(this.env.deliveryBudgetMs),
        async (tx) => (await reopenHandOver(tx, bundle)) ?? this.settleIn(tx, bundle, answerer),
      );
    } catch (cause) {
      throw new InternalError('the answer is recorded but could not be handed over', { cause, retryable: false });
    }
  }

  /** @returns false when the response was confirmed for an agent and none is left to take it */
  private hand(to: HandedOverTo, bundle: ClaimedBundle, answerer: Answerer): boolean {
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
      () => this.resumeLost(bundle, answerer),
    );
    return true;
  }

  /** No agent's connection has carried the response out: path 3 after all, in the background. */
  private resumeLost(bundle: ClaimedBundle, answerer: Answerer): void {
    const { pendingId } = bundle;
    const resume = async (): Promise<void> => {
      const result = await this.conclude(await this.settleAgain(bundle, answerer), bundle, answerer);
      if (result.kind !== 'not-ours') this.events.publish(result.events);
    };
    this.own(pendingId, () => this.track(pendingId, resume())).catch((error: unknown) => {
      this.log.error('delivery.resume_failed', { error, pending_id: pendingId });
    });
  }

  /**
   * The hand-over failed. Its transaction changed nothing, unless its COMMIT got no reply: then the rows are settled.
   * @throws InternalError `retryable: true`
   */
  private async restoreAfter(error: unknown, bundle: ClaimedBundle): Promise<Finalized> {
    this.log.warn('delivery.failed', { error, pending_id: bundle.pendingId });
    let restored: Restored;
    try {
      // A budget of its own, small enough for the responder to hear within its 40 s.
      restored = await this.unitOfWork.run('delivery.restore', Deadline.after(this.env.preClaimBudgetMs), (tx) =>
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
    switch (restored.kind) {
      case 'settled':
        return { kind: 'handed-over', to: 'settled', events: [] };
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
