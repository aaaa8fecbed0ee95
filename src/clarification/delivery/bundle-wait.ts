import { Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { Deadline } from '../../common/deadline.js';
import type { EndSignal } from '../../common/end-signal.js';
import { NotActiveError, NotFoundError } from '../../common/domain-error.js';
import type { OnReply } from '../../common/on-reply.js';
import { Env } from '../../config/env.js';
import type { DomainEvent } from '../../events/domain-event.js';
import { EventBus } from '../../events/event-bus.js';
import type { Caller } from '../../identity/caller.js';
import { Log } from '../../observability/log.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import { Reader, UnitOfWork } from '../../persistence/unit-of-work.js';
import { isTerminal } from '../../tasks/domain/session-state.js';
import { findSession, lockSession, setSessionState } from '../../tasks/persistence/sessions.repository.js';
import { BundleAccess, type ReachedBundle } from '../bundle-access.js';
import { bundleNotActive, bundleNotFound } from '../domain/bundle-errors.js';
import { isResolvedStatus, winnerResponse, type BundleRow, type Response } from '../domain/bundle.js';
import { findBundleStanding, type BundleStanding } from '../persistence/bundles.repository.js';
import { attachBundle, detachBundles } from '../persistence/close-bundles.tx.js';
import { acknowledgeResumption } from '../persistence/resumption.tx.js';
import { OutcomeDelivery } from './outcome-delivery.js';
import { Waiter, WaiterRegistry, type Handed } from './waiter-registry.js';

/** The recorded response, and the turn that already carries it when its agent was resumed. */
export type WaitResponse = Response & { readonly turn_id?: string };

export type WaitResult =
  | { readonly kind: 'response'; readonly response: WaitResponse; readonly rows: readonly BundleRow[] }
  /** The time was up, the caller has gone, or the server stops. The question lives on. */
  | { readonly kind: 'pending' };

export interface WaitOptions {
  /** Milliseconds, cut to the configured cap; default 50,000. */
  readonly timeoutMs?: number;
  /** Aborted when the caller has gone or may no longer wait. */
  readonly signal: EndSignal;
  /** The bundle, when a guard has already authorised this caller for it. */
  readonly authorised?: ReachedBundle;
  /** Only a bundle of this session will do. */
  readonly sessionId?: string;
  /** Whether what the wait returns has been written out to the caller. Left out, it counts as written. */
  readonly onReply?: OnReply;
}

const DEFAULT_WAIT_MS = 50_000;

/**
 * Blocks until a bundle is resolved and handed over. The waiter registers before it reads, so that no change falls
 * between; whatever wakes it, it reads the rows again and goes by them alone. Waiting again is always safe, also after a
 * restart: a response that was taken and lost on the way is in the rows.
 */
@Injectable()
export class BundleWait implements OnModuleDestroy, BeforeApplicationShutdown {
  private isStopping = false;
  /** Waits, and what they leave to be written when they end. */
  private readonly open = new Set<Promise<unknown>>();

  constructor(
    private readonly access: BundleAccess,
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly waiters: WaiterRegistry,
    private readonly delivery: OutcomeDelivery,
    private readonly events: EventBus,
    private readonly env: Env,
    private readonly log: Log,
  ) {}

  /**
   * @throws NotFoundError before or, when its task is deleted, during the wait
   * @throws NotActiveError for a bundle that is superseded, expired or cancelled, or becomes so
   */
  wait(caller: Caller, pendingId: string, options: WaitOptions): Promise<WaitResult> {
    return this.track(this.begin(caller, pendingId, options));
  }

  /** Ends all waits with `pending`: they hold requests open, which the HTTP server waits for. */
  onModuleDestroy(): void {
    this.isStopping = true;
    this.waiters.stopExpecting();
    this.waiters.wakeAll();
  }

  /** Lets hand-overs, and what the waits started, come to their end. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.delivery.drain();
    while (this.open.size > 0) await Promise.allSettled(this.open);
  }

  private async begin(caller: Caller, pendingId: string, options: WaitOptions): Promise<WaitResult> {
    const bundle = options.authorised ?? (await this.identify(caller, pendingId));
    if (options.sessionId !== undefined && options.sessionId !== bundle.sessionId) throw bundleNotFound();
    // With authentication off anybody may be the agent.
    const role = caller.kind === 'user' ? 'observer' : 'agent';
    const giveUpAt = performance.now() + Math.min(options.timeoutMs ?? DEFAULT_WAIT_MS, this.env.waitTimeoutMs);
    const waiter = new Waiter(bundle.pendingId, bundle.sessionId, role, options.onReply);
    this.waiters.register(waiter);
    let isOver = true;
    try {
      const result = await this.untilSettled(waiter, giveUpAt, options.signal);
      // Nothing can be handed over between this look and the removal.
      if (waiter.taken !== undefined) return { kind: 'response', ...handed(waiter.taken) };
      isOver = result.kind === 'response';
      return result;
    } catch (error) {
      if (waiter.taken !== undefined) return { kind: 'response', ...handed(waiter.taken) };
      isOver = error instanceof NotActiveError || error instanceof NotFoundError;
      throw error;
    } finally {
      this.waiters.remove(waiter);
      if (role === 'agent' && !isOver) this.afterAgentLeft(waiter, options.signal.aborted);
    }
  }

  private track<T>(work: Promise<T>): Promise<T> {
    this.open.add(work);
    const ended = (): void => void this.open.delete(work);
    work.then(ended, ended);
    return work;
  }

  private async identify(caller: Caller, pendingId: string): Promise<ReachedBundle> {
    const { pendingId: id, sessionId } = await this.access.authorise(caller, pendingId, this.readBudget());
    return { pendingId: id, sessionId };
  }

  /** What is handed to the waiter meanwhile counts before what this returns or throws. */
  private async untilSettled(waiter: Waiter, giveUpAt: number, signal: EndSignal): Promise<WaitResult> {
    while (waiter.taken === undefined) {
      const seen = await this.look(waiter, giveUpAt, signal);
      if (typeof seen !== 'number') return seen;
      await waiter.sleep(seen, signal);
    }
    return { kind: 'pending' };
  }

  /**
   * One look at the rows. A function of its own, so that nothing of it is kept while the waiter sleeps.
   * @returns how it has ended, or for how many milliseconds to sleep before the next look
   */
  private async look(waiter: Waiter, giveUpAt: number, signal: EndSignal): Promise<WaitResult | number> {
    const standing = await findBundleStanding(this.reader.within(this.readBudget()), waiter.pendingId);
    const { rows } = standing;
    if (rows.length === 0) throw bundleNotFound();
    const settled = settledResponse(standing, waiter.pendingId);
    if (settled !== undefined && !this.delivery.isUnderWay(waiter.pendingId)) {
      return this.fromRows(waiter, settled, rows);
    }
    if (!standing.isActive && settled === undefined && !isHandOverOwed(rows)) {
      throw bundleNotActive();
    }
    if (standing.isActive && waiter.role === 'agent' && !waiter.isAttached) {
      await this.attach(waiter, rows);
      waiter.isAttached = true;
    }
    if (signal.aborted) return { kind: 'pending' };
    const left = giveUpAt - performance.now();
    // A hand-over that has begun counts on this agent: it ends within its own budget.
    const isCountedOn = waiter.role === 'agent' && this.delivery.isUnderWay(waiter.pendingId);
    if (!isCountedOn && (this.isStopping || left <= 0)) {
      return settled === undefined ? { kind: 'pending' } : this.fromRows(waiter, settled, rows);
    }
    return isCountedOn ? Math.max(left, this.env.deliveryBudgetMs) : left;
  }

  /** An agent that begins to wait makes its bundle live again and its session wait for input. */
  private async attach(waiter: Waiter, rows: readonly BundleRow[]): Promise<void> {
    const session = await findSession(this.reader.within(this.readBudget()), waiter.sessionId);
    if (session?.state === 'waiting_for_input' && !rows.some((row) => row.agentDisconnected)) return;
    await this.change('bundle.attach', (tx) => this.attachIn(tx, waiter));
  }

  private async attachIn(tx: Tx, waiter: Waiter): Promise<readonly DomainEvent[]> {
    const now = this.clock.now();
    const session = await lockSession(tx, waiter.sessionId);
    if (session === undefined || isTerminal(session.state)) return [];
    const attached = await attachBundle(tx, session, waiter.pendingId, now);
    if (!attached.isActive || session.state === 'waiting_for_input') return attached.events;
    await setSessionState(tx, session.id, 'waiting_for_input', null, now);
    return [
      ...attached.events,
      {
        type: 'session.state_changed',
        taskId: session.task_id,
        sessionId: session.id,
        state: 'waiting_for_input',
      },
    ];
  }

  private afterAgentLeft(waiter: Waiter, hasGone: boolean): void {
    if (!hasGone && !this.isStopping) this.waiters.expectReturn(waiter.pendingId, this.env.reattachMs);
    if (this.waiters.hasAgent(waiter.pendingId)) return;
    void this.track(this.detach(waiter)).catch((error: unknown) => {
      this.log.warn('bundle.detach_failed', { error, pending_id: waiter.pendingId });
    });
  }

  /** The record that nobody waits any more; skipped when an agent has come back meanwhile. */
  private async detach(waiter: Waiter): Promise<void> {
    await this.change('bundle.detach', async (tx) => {
      const session = await lockSession(tx, waiter.sessionId);
      if (session === undefined || this.waiters.hasAgent(waiter.pendingId)) return [];
      return detachBundles(tx, waiter.sessionId, waiter.pendingId, this.clock.now());
    });
    // It may have come back, and looked, while that was being written.
    if (this.waiters.hasAgent(waiter.pendingId)) await this.change('bundle.attach', (tx) => this.attachIn(tx, waiter));
  }

  private async change(name: string, work: (tx: Tx) => Promise<readonly DomainEvent[]>): Promise<void> {
    const budget = Deadline.after(this.env.deliveryBudgetMs);
    this.events.publish(await this.unitOfWork.run(name, budget, work));
  }

  /**
   * The response as the rows have it, and the turn that carries it already. For the bundle's agent this wait is the
   * delivery: the turn's mailbox entry is settled with it.
   */
  private async fromRows(waiter: Waiter, response: Response, rows: readonly BundleRow[]): Promise<WaitResult> {
    const byAgent = waiter.role === 'agent';
    const settleReply = byAgent ? this.delivery.alsoTaken(waiter.pendingId) : undefined;
    let turnId: string | undefined;
    try {
      turnId = await acknowledgeResumption(
        this.unitOfWork,
        this.reader,
        { sessionId: waiter.sessionId, pendingId: waiter.pendingId, byAgent },
        this.readBudget(),
        this.clock.now(),
      );
    } catch (error) {
      settleReply?.(false);
      throw error;
    }
    if (settleReply !== undefined) waiter.onReply(settleReply);
    return { kind: 'response', response: turnId === undefined ? response : { ...response, turn_id: turnId }, rows };
  }

  private readBudget(): Deadline {
    return Deadline.after(this.env.preClaimBudgetMs);
  }
}

/** Defined once the bundle is resolved and its hand-over is settled. One that is still active in part is not (L12). */
function settledResponse({ rows, isActive }: BundleStanding, pendingId: string): Response | undefined {
  if (isActive || isHandOverOwed(rows)) return undefined;
  return winnerResponse(rows, pendingId)?.response;
}

function handed({ response, rows }: Handed): { response: WaitResponse; rows: readonly BundleRow[] } {
  return { response, rows };
}

function isHandOverOwed(rows: readonly BundleRow[]): boolean {
  return rows.some((row) => isResolvedStatus(row.status) && row.deliveryPending);
}
