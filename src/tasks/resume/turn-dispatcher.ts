import { Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { Clock, plusMilliseconds } from '../../common/clock.js';
import { Deadline } from '../../common/deadline.js';
import { End } from '../../common/end-signal.js';
import { Wakeup } from '../../common/wakeup.js';
import { Env } from '../../config/env.js';
import { EventBus } from '../../events/event-bus.js';
import { Log } from '../../observability/log.js';
import { Reader, UnitOfWork, type Tx } from '../../persistence/unit-of-work.js';
import { readResumeSettings } from '../domain/resume-settings.js';
import { isTerminal } from '../domain/session-state.js';
import {
  abandonDispatch,
  findNextDispatchAt,
  listDueDispatches,
  postponeDispatch,
  settleDispatch,
  type DispatchRow,
} from '../persistence/dispatches.repository.js';
import { lockSession } from '../persistence/sessions.repository.js';
import { isHopeless, pauseAfter } from './resend-schedule.js';
import { ResumePort } from './resume.port.js';

/** How many agents are called at once: one that hangs holds up no other. */
const CALLS_AT_ONCE = 16;
/** How often the rows are asked whatever this process has heard. */
const LONGEST_SLEEP_MS = 60_000;
/** After the database was away. */
const TROUBLE_PAUSE_MS = 5_000;

/**
 * Sends agents what their turns owe them: prompts that opened a turn, and answers that were sent without a reply. Each is
 * sent again under the turn's id until it is accepted, the agent fetches it from its mailbox, its session ends, or a day
 * has gone by; what is left then is in the mailbox. The rows hold all of it: killed anywhere, the next start goes on.
 */
@Injectable()
export class TurnDispatcher implements OnModuleDestroy, BeforeApplicationShutdown {
  /** By session: of each, one at a time. */
  private readonly calls = new Map<string, Promise<void>>();
  private readonly stopping = new End();
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> | undefined;
  private isCalledFor = false;

  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly port: ResumePort,
    private readonly events: EventBus,
    private readonly env: Env,
    private readonly log: Log,
  ) {}

  /** Once what an earlier process left is seen to; until then nobody is called. */
  start(): void {
    this.events.subscribe((event) => {
      if (event.type === 'turn.started') this.look();
    });
    this.look();
  }

  onModuleDestroy(): void {
    this.stopping.abort();
    clearTimeout(this.timer);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.looking;
    await Promise.allSettled(this.calls.values());
    clearTimeout(this.timer);
  }

  /** Sees to what is due; one look at a time, and another after it when something has happened meanwhile. */
  look(): void {
    this.isCalledFor = true;
    this.looking ??= this.lookWhileCalledFor().finally(() => (this.looking = undefined));
  }

  private async lookWhileCalledFor(): Promise<void> {
    while (this.isCalledFor && !this.stopping.aborted) {
      this.isCalledFor = false;
      let sleepMs: number;
      try {
        sleepMs = await this.callDue();
      } catch (error) {
        this.log.warn('webhook.look_failed', { error });
        sleepMs = TROUBLE_PAUSE_MS;
      }
      if (!this.stopping.aborted) this.lookIn(sleepMs);
    }
  }

  private lookIn(milliseconds: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), Math.min(Math.max(milliseconds, 0), LONGEST_SLEEP_MS));
    this.timer.unref();
  }

  /** @returns milliseconds until the next one is due */
  private async callDue(): Promise<number> {
    const sql = this.reader.within(Deadline.after(this.env.deliveryBudgetMs));
    const now = this.clock.now();
    // More than may be called, because those that are being called are still due.
    for (const due of await listDueDispatches(sql, now, 2 * CALLS_AT_ONCE)) {
      if (this.calls.size >= CALLS_AT_ONCE) break;
      if (!this.calls.has(due.task_session_id)) this.begin(due);
    }
    const next = await findNextDispatchAt(sql, now);
    return next === undefined ? LONGEST_SLEEP_MS : Date.parse(next) - Date.parse(now);
  }

  private begin(due: DispatchRow): void {
    const sessionId = due.task_session_id;
    this.calls.set(
      sessionId,
      this.see(due).then(
        () => {
          this.calls.delete(sessionId);
          this.look();
        },
        async (error: unknown) => {
          this.log.warn('webhook.record_failed', { error, turn_id: due.id });
          // It is still due, but not at once again: until then its session counts as being called.
          await new Wakeup().sleep(TROUBLE_PAUSE_MS, this.stopping);
          this.calls.delete(sessionId);
          this.look();
        },
      ),
    );
  }

  private async see(due: DispatchRow): Promise<void> {
    const settings = readResumeSettings(due.resume);
    const now = this.clock.now();
    if (isTerminal(due.state) || settings.mode !== 'webhook' || due.dispatch_body === null) {
      return this.recordUnlessMoved('dispatch.abandon', due, (tx) => abandonDispatch(tx, due.id));
    }
    if (isHopeless(due.dispatch_since ?? now, now)) {
      this.log.error('webhook.given_up', { turn_id: due.id, attempts: due.dispatch_attempts });
      return this.record('dispatch.abandon', (tx) => abandonDispatch(tx, due.id));
    }
    const call = { id: due.id, url: settings.url, secret: settings.secret, body: due.dispatch_body };
    const result = await this.port.call(call, Deadline.after(this.env.deliveryBudgetMs), this.stopping);
    if (result.kind === 'accepted') {
      return this.record('dispatch.settle', (tx) => settleDispatch(tx, due.id, this.clock.now()));
    }
    // Not its fault: the next start sends it at once.
    if (this.stopping.aborted) return;
    const pauseMs = pauseAfter(due.dispatch_attempts + 1);
    this.log.warn('webhook.failed', {
      turn_id: due.id,
      outcome: result.kind,
      reason: result.reason,
      retry_ms: pauseMs,
    });
    return this.recordUnlessMoved('dispatch.postpone', due, (tx) =>
      postponeDispatch(tx, due.id, plusMilliseconds(this.clock.now(), pauseMs)),
    );
  }

  /** What the old settings came to says nothing of new ones: it stays due, and is tried by those at once. */
  private recordUnlessMoved(name: string, due: DispatchRow, work: (tx: Tx) => Promise<unknown>): Promise<void> {
    return this.record(name, async (tx) => {
      const session = await lockSession(tx, due.task_session_id);
      if (session?.resume === due.resume) await work(tx);
    });
  }

  private async record(name: string, work: (tx: Tx) => Promise<unknown>): Promise<void> {
    await this.unitOfWork.run(name, Deadline.after(this.env.deliveryBudgetMs), work);
  }
}
