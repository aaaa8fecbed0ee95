import { Injectable } from '@nestjs/common';
import type { EndSignal } from '../../common/end-signal.js';
import type { OnReply } from '../../common/on-reply.js';
import { Wakeup, type WakeupResult } from '../../common/wakeup.js';
import { EventBus } from '../../events/event-bus.js';
import type { DomainEvent } from '../../events/domain-event.js';
import { isTerminal } from '../../tasks/domain/session-state.js';
import type { BundleRow, Response } from '../domain/bundle.js';

/** An agent makes its bundle live and takes the response over; an observer only looks on. */
export type WaiterRole = 'agent' | 'observer';

/** What a waiter is handed: the response, and the rows that it answers. */
export interface Handed {
  readonly response: Response;
  readonly rows: readonly BundleRow[];
}

/** One blocked call. It is woken whenever its bundle may have changed, and looks at the rows itself. */
export class Waiter {
  private readonly wakeup = new Wakeup();
  private handed: Handed | undefined;

  /** Its bundle has been made live for it. */
  isAttached = false;

  constructor(
    readonly pendingId: string,
    readonly sessionId: string,
    readonly role: WaiterRole,
    /** Whether what the call returns reaches its client; without it, it does. */
    readonly onReply: OnReply = (listener) => listener(true),
  ) {}

  /** Sleeps until woken, timed out or aborted; see {@link taken} afterwards. */
  sleep(milliseconds: number, signal: EndSignal): Promise<WakeupResult> {
    return this.wakeup.sleep(milliseconds, signal);
  }

  wake(): void {
    this.wakeup.wake();
  }

  /** Hands over a response whose hand-over has been durably confirmed. */
  hand(handed: Handed): void {
    this.handed = handed;
    this.wakeup.wake();
  }

  /** What was handed to this waiter, if anything. */
  get taken(): Handed | undefined {
    return this.handed;
  }
}

/**
 * Who waits for what in this process, and since when an agent that gave up may be on its way back. The only mutable
 * state of the feature, and all of it may be lost at any line: whether a bundle is resolved is for the rows to say.
 *
 * Woken by committed events: any event of a session or bundle makes its waiters look again.
 */
@Injectable()
export class WaiterRegistry {
  private readonly waiters = new Map<string, Set<Waiter>>();
  private readonly bundlesOfSession = new Map<string, Set<string>>();
  private readonly expectedBack = new Map<string, { readonly until: number; readonly timer: NodeJS.Timeout }>();
  private readonly arrivals = new Map<string, Set<() => void>>();

  constructor(events: EventBus) {
    events.subscribe((event) => this.onEvent(event));
  }

  get size(): number {
    let size = 0;
    for (const waiters of this.waiters.values()) size += waiters.size;
    return size;
  }

  countByRole(): Record<WaiterRole, number> {
    const counts = { agent: 0, observer: 0 };
    for (const waiters of this.waiters.values()) for (const { role } of waiters) counts[role] += 1;
    return counts;
  }

  register(waiter: Waiter): void {
    const { pendingId, sessionId, role } = waiter;
    addTo(this.waiters, pendingId, waiter);
    addTo(this.bundlesOfSession, sessionId, pendingId);
    if (role === 'agent') {
      this.forgetReturn(pendingId);
      for (const arrived of this.arrivals.get(pendingId) ?? []) arrived();
    }
  }

  remove(waiter: Waiter): void {
    if (!removeFrom(this.waiters, waiter.pendingId, waiter)) return;
    if (!this.waiters.has(waiter.pendingId)) removeFrom(this.bundlesOfSession, waiter.sessionId, waiter.pendingId);
  }

  /** Whether the bundle is live. */
  hasAgent(pendingId: string): boolean {
    return this.of(pendingId).some((waiter) => waiter.role === 'agent');
  }

  of(pendingId: string): readonly Waiter[] {
    return [...(this.waiters.get(pendingId) ?? [])];
  }

  wakeBundle(pendingId: string): void {
    for (const waiter of this.waiters.get(pendingId) ?? []) waiter.wake();
  }

  wakeAll(): void {
    for (const pendingId of this.waiters.keys()) this.wakeBundle(pendingId);
  }

  /** An agent left with `pending` or a time-out and is about to ask again. */
  expectReturn(pendingId: string, withinMs: number): void {
    this.forgetReturn(pendingId);
    if (withinMs <= 0) return;
    const timer = setTimeout(() => this.expectedBack.delete(pendingId), withinMs);
    timer.unref();
    this.expectedBack.set(pendingId, { until: performance.now() + withinMs, timer });
  }

  /** Milliseconds for which an agent that has just left is still expected back; 0 when none is. */
  returnExpectedWithin(pendingId: string): number {
    const expected = this.expectedBack.get(pendingId);
    return expected === undefined ? 0 : Math.max(0, expected.until - performance.now());
  }

  /** Resolves as soon as an agent waits, or after the time. */
  async agentArrival(pendingId: string, withinMs: number): Promise<void> {
    if (this.hasAgent(pendingId)) return;
    const arrived = new Wakeup();
    const listener = (): void => arrived.wake();
    addTo(this.arrivals, pendingId, listener);
    try {
      await arrived.sleep(withinMs);
    } finally {
      removeFrom(this.arrivals, pendingId, listener);
    }
  }

  /** Ends every grace period at once, for a server that stops. */
  stopExpecting(): void {
    for (const pendingId of [...this.expectedBack.keys()]) this.forgetReturn(pendingId);
    for (const listeners of this.arrivals.values()) for (const arrived of listeners) arrived();
  }

  private forgetReturn(pendingId: string): void {
    clearTimeout(this.expectedBack.get(pendingId)?.timer);
    this.expectedBack.delete(pendingId);
  }

  private onEvent(event: DomainEvent): void {
    if ('pendingId' in event) this.wakeBundle(event.pendingId);
    const sessionIds = event.type === 'task.deleted' ? event.sessionIds : endsBundles(event) ? [event.sessionId] : [];
    for (const sessionId of sessionIds) {
      for (const pendingId of this.bundlesOfSession.get(sessionId) ?? []) this.wakeBundle(pendingId);
    }
  }
}

/** Events after which a waiter's bundle may no longer be active without having been named. */
function endsBundles(event: Exclude<DomainEvent, { type: 'task.deleted' }>): boolean {
  return event.type === 'turn.started' || (event.type === 'session.state_changed' && isTerminal(event.state));
}

function addTo<K, V>(map: Map<K, Set<V>>, key: K, value: V): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, new Set([value]));
  else values.add(value);
}

function removeFrom<K, V>(map: Map<K, Set<V>>, key: K, value: V): boolean {
  const values = map.get(key);
  if (values?.delete(value) !== true) return false;
  if (values.size === 0) map.delete(key);
  return true;
}
