import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import type { Deadline } from '../../common/deadline.js';
import { NotFoundError } from '../../common/domain-error.js';
import { usableId } from '../../common/ids.js';
import type { DomainEvent } from '../../events/domain-event.js';
import { EventBus } from '../../events/event-bus.js';
import type { Caller } from '../../identity/caller.js';
import { Reader, UnitOfWork } from '../../persistence/unit-of-work.js';
import { authorOf } from '../authorization/author.js';
import { TaskAccess } from '../authorization/task-access.js';
import { Clarifications } from '../clarification.port.js';
import { isTerminal, refuseEnded } from '../domain/session-state.js';
import type { OpenTurnInput } from '../inputs.js';
import { hasReservation } from '../persistence/reservations.repository.js';
import { lockSession, setSessionState } from '../persistence/sessions.repository.js';
import { completeTurn, findCurrentTurn, findTurn, listTurns } from '../persistence/turns.repository.js';
import { turnView, type TurnView } from '../views.js';
import { openTurn } from './open-turn.tx.js';
import { releaseQueuedPrompt } from './prompt-queue.tx.js';
import { ReservationBarrier } from './reservation-barrier.js';

@Injectable()
export class Turns {
  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly access: TaskAccess,
    private readonly clarifications: Clarifications,
    private readonly barrier: ReservationBarrier,
    private readonly events: EventBus,
  ) {}

  /**
   * Opens the session's next turn; it is never queued. While an answer is being dispatched in a turn reserved for it,
   * waits for that. A turn that the agent opens itself is not put into its mailbox.
   * @throws ConflictError when the session has ended, TemporarilyUnavailableError when the dispatch takes too long
   */
  async open(caller: Caller, sessionId: string, input: OpenTurnInput, deadline: Deadline): Promise<TurnView> {
    await this.access.session(caller, sessionId, deadline);
    const opened = await this.barrier.pass(sessionId, deadline, (budget) =>
      this.unitOfWork.run('turn.open', budget, async (tx) => {
        const session = await lockSession(tx, sessionId);
        if (session === undefined) throw new NotFoundError('session not found');
        refuseEnded(session);
        if (await hasReservation(tx, sessionId)) return undefined;
        const prompt = input.prompt;
        const next = await openTurn(tx, session, {
          now: this.clock.now(),
          forMailbox: prompt !== undefined && caller.kind !== 'agent',
          ...(prompt !== undefined && { prompt: { content: prompt, ...authorOf(caller, 'user') } }),
        });
        // Only here: every other turn waits until no question is open.
        if (next.follows !== undefined) await this.clarifications.port.noteSuperseded(tx, next.follows, next.turn.id);
        return next;
      }),
    );
    this.events.publish(opened.events);
    return turnView(opened.turn);
  }

  async list(caller: Caller, sessionId: string, deadline: Deadline): Promise<{ turns: TurnView[] }> {
    await this.access.session(caller, sessionId, deadline);
    const rows = await listTurns(this.reader.within(deadline), sessionId);
    return { turns: rows.map(turnView) };
  }

  /** Idempotent. Its open questions become detached and stay answerable while the turn is current. */
  async complete(caller: Caller, sessionId: string, turnId: string, deadline: Deadline): Promise<TurnView> {
    await this.access.session(caller, sessionId, deadline);
    const now = this.clock.now();
    // Detaching runs to its end whatever becomes of the caller's connection.
    const { turn, events } = await this.unitOfWork.run('turn.complete', deadline.withoutCaller(), async (tx) => {
      const changed: DomainEvent[] = [];
      const session = await lockSession(tx, sessionId);
      const found = session && (await findTurn(tx, sessionId, usableId(turnId)));
      if (session === undefined || found === undefined) throw new NotFoundError('turn not found');
      const completed = await completeTurn(tx, found.id, now);
      if (completed === undefined) return { turn: found, events: changed };
      // An agent that was called may be done before we have heard that it accepted; nobody has been told of the turn yet.
      if (completed.isPublished) {
        changed.push({ type: 'turn.completed', taskId: session.task_id, sessionId, turnId: found.id });
      }
      const current = await findCurrentTurn(tx, sessionId);
      if (current?.id === found.id && !isTerminal(session.state)) {
        changed.push(...(await this.clarifications.port.detachActive(tx, sessionId, now)));
        if (session.state !== 'waiting_for_input') {
          await setSessionState(tx, sessionId, 'waiting_for_input', null, now);
          changed.push({
            type: 'session.state_changed',
            taskId: session.task_id,
            sessionId,
            state: 'waiting_for_input',
          });
        }
        changed.push(
          ...(await releaseQueuedPrompt(tx, { ...session, state: 'waiting_for_input' }, this.clarifications.port, now)),
        );
      }
      return { turn: { ...found, completed_at: now, updated_at: now }, events: changed };
    });
    this.events.publish(events);
    return turnView(turn);
  }
}
