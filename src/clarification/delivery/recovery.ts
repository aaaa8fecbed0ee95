import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { Deadline } from '../../common/deadline.js';
import { StartupError } from '../../common/startup-error.js';
import { EventBus } from '../../events/event-bus.js';
import { Log } from '../../observability/log.js';
import { Reader, UnitOfWork, type SqlExecutor } from '../../persistence/unit-of-work.js';
import { Clarifications } from '../../tasks/clarification.port.js';
import { MalformedReservationError, readReservation } from '../../tasks/domain/reservation.js';
import {
  listReservations,
  listUnannouncedTurns,
  type ReservedTurnRow,
} from '../../tasks/persistence/reservations.repository.js';
import { listSessionsWithQueue } from '../../tasks/persistence/messages.repository.js';
import { lockSession } from '../../tasks/persistence/sessions.repository.js';
import { releaseQueuedPrompt } from '../../tasks/turns/prompt-queue.tx.js';
import { turnEvents, type ReservedAnswer } from '../persistence/dispatch-answer.tx.js';
import { hasUnnotedRows, noteUnnotedRows } from '../persistence/note-superseded.tx.js';
import { recordAnnouncement, recoverReservation } from '../persistence/recover-delivery.tx.js';
import { listDeliveryIntents, restoreBundle, type DeliveryIntent } from '../persistence/restore-bundle.tx.js';
import { AnswerDispatch } from './answer-dispatch.js';
import { OutcomeDelivery } from './outcome-delivery.js';
import { RecoveryMetrics } from './recovery-metrics.js';

const BUDGET_MS = 30_000;
const PERIOD_MS = 60_000;
const NOTES_AT_ONCE = 5_000;

/**
 * Answers that are claimed and that nobody is handing over: what a process leaves that was killed in between, and what
 * could not be written down while the database was away. In this order:
 *
 *   1. turns reserved for a dispatch: withdrawn or published (`recover-delivery.tx`)
 *   2. turns that were published by 1, now or before: their events are sent, then that is recorded
 *   3. intents without a reservation: restored, or cleared where the session has moved on
 *   4. at start, queued prompts that nothing holds back: released
 *   5. at start, notes on superseded questions that are missing: written
 *
 * Runs before the first request is admitted, where a failure stops the start, and once a minute over what no hand-over
 * of this process owns.
 */
@Injectable()
export class Recovery implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;

  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly delivery: OutcomeDelivery,
    private readonly dispatches: AnswerDispatch,
    private readonly clarifications: Clarifications,
    private readonly events: EventBus,
    private readonly metrics: RecoveryMetrics,
    private readonly log: Log,
  ) {}

  /** @throws StartupError, with nothing changed, when a reservation does not say what it was for */
  async onApplicationBootstrap(): Promise<void> {
    const { answers, malformed } = await this.reservations();
    const [first] = malformed;
    if (first !== undefined) throw first.problem;
    for (const answer of answers) await this.recoverAnswer(answer);
    for (const turn of await listUnannouncedTurns(this.sql())) await this.announce(turn);
    for (const intent of await listDeliveryIntents(this.sql())) await this.recoverIntent(intent);
    for (const sessionId of await listSessionsWithQueue(this.sql())) await this.releaseQueue(sessionId);
    await this.noteSuperseded();
    this.timer = setInterval(() => void this.reconcile(), PERIOD_MS);
    this.timer.unref();
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.running;
  }

  /** Never throws: what could not be seen to stays as it is until the next time, and holds up nothing else. */
  async reconcile(): Promise<void> {
    // One that is slow is not overtaken by the next.
    this.running ??= this.reconcileAll().finally(() => (this.running = undefined));
    await this.running;
  }

  private async reconcileAll(): Promise<void> {
    try {
      const { answers, malformed } = await this.reservations();
      for (const { turn, problem } of malformed) {
        this.log.error('recovery.reservation_unreadable', { error: problem, turn_id: turn.id });
      }
      for (const answer of answers) await this.attempt(answer.turnId, () => this.recoverAnswer(answer));
      for (const turn of await listUnannouncedTurns(this.sql())) await this.attempt(turn.id, () => this.announce(turn));
      // Where a reservation still stands, the intents may belong to it.
      const reserved = new Set((await listReservations(this.sql())).map((turn) => turn.task_session_id));
      for (const intent of await listDeliveryIntents(this.sql())) {
        if (!reserved.has(intent.sessionId)) await this.attempt(intent.pendingId, () => this.recoverIntent(intent));
      }
    } catch (error) {
      this.log.warn('recovery.failed', { error });
    }
  }

  private async attempt(id: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.log.error('delivery.recovery_failed', { error, id });
    }
  }

  private async reservations(): Promise<Reservations> {
    const answers: ReservedAnswer[] = [];
    const malformed: { turn: ReservedTurnRow; problem: StartupError }[] = [];
    for (const turn of await listReservations(this.sql())) {
      try {
        const { pendingId, messageIds: rowIds } = readReservation(turn.metadata);
        answers.push({ turnId: turn.id, sessionId: turn.task_session_id, pendingId, rowIds });
      } catch (error) {
        if (!(error instanceof MalformedReservationError)) throw error;
        malformed.push({ turn, problem: unreadable(turn, error) });
      }
    }
    return { answers, malformed };
  }

  private async recoverAnswer(answer: ReservedAnswer): Promise<void> {
    const { turnId, pendingId } = answer;
    const recovered = await this.unitOfWork.run('recovery.reservation', Deadline.after(BUDGET_MS), (tx) =>
      recoverReservation(
        tx,
        answer,
        () => this.dispatches.remembered(turnId),
        () => this.delivery.isOwned(pendingId),
        this.clarifications.port,
        this.clock.now(),
      ),
    );
    if (recovered.kind === 'owned') return;
    this.dispatches.forget(turnId);
    if (recovered.kind === 'gone') return;
    if (recovered.kind === 'published') this.metrics.turnPublished();
    if (recovered.kind === 'restored' || recovered.kind === 'kept') this.metrics.bundle(recovered.kind);
    this.log.warn('delivery.recovered', { pending_id: pendingId, turn_id: turnId, outcome: recovered.kind });
    this.events.publish(recovered.events);
  }

  /** Sent before it is recorded: killed in between it is sent again, which a hint may be. */
  private async announce(turn: ReservedTurnRow): Promise<void> {
    this.events.publish(turnEvents(turn));
    await this.unitOfWork.run('recovery.announce', Deadline.after(BUDGET_MS), (tx) =>
      recordAnnouncement(tx, turn, this.clock.now()),
    );
  }

  private async recoverIntent(intent: DeliveryIntent): Promise<void> {
    const restored = await this.unitOfWork.run('delivery.recover', Deadline.after(BUDGET_MS), (tx) =>
      restoreBundle(tx, intent, this.clock.now(), () => this.delivery.isOwned(intent.pendingId)),
    );
    if (restored.kind === 'settled' || restored.kind === 'gone') return;
    this.metrics.bundle(restored.kind);
    this.log.warn('delivery.recovered', { pending_id: intent.pendingId, outcome: restored.kind });
    this.events.publish(restored.events);
  }

  /** What held it back may be gone with the process, or by an operator's hand. */
  private async releaseQueue(sessionId: string): Promise<void> {
    const events = await this.unitOfWork.run('recovery.queue', Deadline.after(BUDGET_MS), async (tx) => {
      const session = await lockSession(tx, sessionId);
      return session === undefined ? [] : releaseQueuedPrompt(tx, session, this.clarifications.port, this.clock.now());
    });
    this.events.publish(events);
  }

  /** What an older version, or another hand, left superseded; in batches, of which a start that is killed keeps those done. */
  private async noteSuperseded(): Promise<void> {
    if (!(await hasUnnotedRows(this.sql()))) return;
    let rows = 0;
    for (let noted = NOTES_AT_ONCE; noted === NOTES_AT_ONCE; rows += noted) {
      noted = await this.unitOfWork.run('recovery.note-superseded', Deadline.after(BUDGET_MS), (tx) =>
        noteUnnotedRows(tx, NOTES_AT_ONCE),
      );
    }
    this.log.info('recovery.superseded_noted', { rows });
  }

  private sql(): SqlExecutor {
    return this.reader.within(Deadline.after(BUDGET_MS));
  }
}

interface Reservations {
  readonly answers: readonly ReservedAnswer[];
  readonly malformed: readonly { readonly turn: ReservedTurnRow; readonly problem: StartupError }[];
}

function unreadable(turn: ReservedTurnRow, cause: MalformedReservationError): StartupError {
  return new StartupError(
    `turn ${turn.id} is reserved for handing over an answer, but ${cause.message}; nothing was changed. ` +
      'Look at it with "recovery show", or let go of it with "recovery discard"',
    { cause },
  );
}
