import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { Deadline } from '../common/deadline.js';
import { EventBus } from '../events/event-bus.js';
import type { Caller } from '../identity/caller.js';
import { Log } from '../observability/log.js';
import { Reader } from '../persistence/unit-of-work.js';
import { PendingActions } from '../tasks/pending-actions.js';
import { findTaskHomes } from '../tasks/persistence/task-homes.query.js';
import { pendingAction } from '../tasks/views.js';
import type { Envelope } from './envelope.js';
import { eventId, ReplayBuffer, type Passage, type Untold } from './replay-buffer.js';
import { StreamSettings } from './stream-settings.js';

/** So many events share the two statements that tell about them. */
const BATCH = 200;

/** So many streams are written to in one turn of the event loop: with a thousand, others would wait some 20 ms. */
const STREAMS_A_TURN = 100;

/**
 * For every millisecond that telling took, so many pass before the next look: a thousand streams take a third of the
 * process at most, and what is published meanwhile is told together.
 */
const REST_FACTOR = 2;
const LONGEST_REST_MS = 250;

/** Events for which these statements take longer go out without what they would have told. */
const LOOK_BUDGET_MS = 5_000;

/**
 * From what was published to what can be streamed. It listens from its construction on, before anything is recovered.
 * What an event needs to be told is looked up afterwards and only while somebody listens, in order: a publisher never
 * waits, and while one look is under way events gather for the next.
 */
@Injectable()
export class EventFeed implements OnModuleDestroy, BeforeApplicationShutdown {
  private readonly buffer: ReplayBuffer;
  private readonly unsubscribe: () => void;
  private readonly listeners = new Set<() => void>();
  /** Somebody who listens wants to hear what comes after it. */
  private wantedAfter = 0;
  private epoch = 0;
  private looking: Promise<void> | undefined;
  private isStopping = false;

  constructor(
    events: EventBus,
    private readonly pendingActions: PendingActions,
    private readonly reader: Reader,
    settings: StreamSettings,
    private readonly log: Log,
  ) {
    this.buffer = new ReplayBuffer(settings.replayEvents);
    this.unsubscribe = events.subscribe((event) => {
      if (event.type === 'task.deleted') return;
      this.buffer.add(event);
      this.look();
    });
    void pendingActions.started.then((epoch) => (this.epoch = epoch));
  }

  /** The number of the newest event. */
  get position(): number {
    return this.buffer.position;
  }

  idAt(position: number): string {
    return eventId(this.epoch, position);
  }

  /** Where a client that was told this id has come to; undefined when what came after it is not known any more. */
  positionOf(id: string): number | undefined {
    const [, epoch, position] = /^(\d{1,15})-(\d{1,15})$/.exec(id) ?? [];
    return Number(epoch) === this.epoch && this.reachesBackTo(Number(position)) ? Number(position) : undefined;
  }

  reachesBackTo(position: number): boolean {
    return this.buffer.reachesBackTo(position);
  }

  /** What can be told to the caller of what came after the position. */
  after(position: number, caller: Caller): Passage {
    return this.buffer.after(position, caller);
  }

  /**
   * Calls back whenever more can be told of what came after the position.
   * @returns ends that
   */
  listen(position: number, listener: () => void): () => void {
    this.wantedAfter = this.listeners.size === 0 ? position : Math.min(this.wantedAfter, position);
    this.listeners.add(listener);
    this.look();
    return () => this.listeners.delete(listener);
  }

  onModuleDestroy(): void {
    this.isStopping = true;
    this.unsubscribe();
    this.listeners.clear();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.looking;
  }

  private look(): void {
    if (this.listeners.size === 0) return;
    this.looking ??= this.tellAll();
  }

  private async tellAll(): Promise<void> {
    // What is published together is looked at together.
    await Promise.resolve();
    while (this.listeners.size > 0) {
      const untold = this.buffer.untoldAfter(this.wantedAfter, BATCH);
      if (untold.length === 0) break;
      const found = await this.find(untold);
      this.buffer.tell(this.epoch, found);
      const tookMs = await this.notify();
      // Not while there is more than one look can tell: what is published must not outrun what is told.
      const restMs = untold.length < BATCH ? Math.min(LONGEST_REST_MS, Math.floor(tookMs * REST_FACTOR)) : 0;
      if (restMs > 0 && !this.isStopping) await pause(restMs);
    }
    this.wantedAfter = this.buffer.position;
    // In the same step as the last look around: what is published a moment later begins anew.
    this.looking = undefined;
  }

  /** Every listener, some in each turn of the event loop. @returns for how many milliseconds they kept it busy */
  private async notify(): Promise<number> {
    let tookMs = 0;
    let called = 0;
    let startedAt = performance.now();
    for (const listener of this.listeners) {
      listener();
      called += 1;
      if (called % STREAMS_A_TURN > 0) continue;
      tookMs += performance.now() - startedAt;
      await nextTurn();
      startedAt = performance.now();
    }
    return tookMs + performance.now() - startedAt;
  }

  private async find(untold: readonly Untold[]): Promise<readonly (readonly [number, Envelope])[]> {
    const revision = this.pendingActions.nextRevision();
    const sql = this.reader.within(Deadline.after(LOOK_BUDGET_MS));
    const taskIds = [...new Set(untold.map(({ event }) => event.taskId))];
    const sessionIds = [...new Set(untold.map(({ event }) => event.sessionId))];
    const homes = await this.attempt(() => findTaskHomes(sql, taskIds, sessionIds));
    const pending = homes && (await this.attempt(() => this.pendingActions.ofTasks(sql, [...homes.keys()], revision)));
    return untold.map(({ position, event }) => [
      position,
      {
        event,
        home: homes === undefined ? 'unknown' : (homes.get(event.taskId) ?? 'missing'),
        pendingAction: pending && pendingAction(pending.ofSession(event.sessionId)),
        revision,
      },
    ]);
  }

  private async attempt<T>(look: () => Promise<T>): Promise<T | undefined> {
    try {
      return await look();
    } catch (error) {
      this.log.warn('events.look_failed', { error });
      return undefined;
    }
  }
}
