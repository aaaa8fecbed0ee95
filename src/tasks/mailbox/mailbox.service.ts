import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { Deadline } from '../../common/deadline.js';
import type { EndSignal } from '../../common/end-signal.js';
import { NotFoundError, UnauthorizedError } from '../../common/domain-error.js';
import { usableId } from '../../common/ids.js';
import { Wakeup } from '../../common/wakeup.js';
import { Env } from '../../config/env.js';
import { EventBus } from '../../events/event-bus.js';
import type { Caller } from '../../identity/caller.js';
import { CallerLifetime } from '../../identity/caller-lifetime.js';
import { Reader, UnitOfWork } from '../../persistence/unit-of-work.js';
import { TaskAccess } from '../authorization/task-access.js';
import { lockSession } from '../persistence/sessions.repository.js';
import { acknowledgeMailbox, findMailboxEntry } from '../persistence/turns.repository.js';
import { turnView, type TurnView } from '../views.js';

/** The next turn that waits for a pull-mode agent. Reading it changes nothing until the agent acknowledges. */
@Injectable()
export class Mailbox implements OnModuleDestroy {
  private readonly waiting = new Set<Wakeup>();
  private isStopping = false;

  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly access: TaskAccess,
    private readonly lifetime: CallerLifetime,
    private readonly events: EventBus,
    private readonly env: Env,
  ) {}

  /** Ends the waits: they hold requests open, which the HTTP server waits for. */
  onModuleDestroy(): void {
    this.isStopping = true;
    for (const wakeup of this.waiting) wakeup.wake();
  }

  /**
   * @param waitSeconds how long to wait for an entry when there is none
   * @param callerGone ends the wait at once
   * @throws NotFoundError, UnauthorizedError when the token ended meanwhile
   */
  async read(
    caller: Caller,
    sessionId: string,
    waitSeconds: number,
    callerGone: EndSignal,
  ): Promise<{ turn: TurnView; prompt: string } | undefined> {
    const wakeup = new Wakeup();
    let isTokenOver = false;
    const unsubscribe = this.events.subscribe((event) => {
      if ('sessionId' in event ? event.sessionId === sessionId : event.sessionIds.includes(sessionId)) wakeup.wake();
    });
    const unwatch = this.lifetime.watch(caller, () => {
      isTokenOver = true;
      wakeup.wake();
    });
    this.waiting.add(wakeup);
    const giveUpAt = performance.now() + waitSeconds * 1000;
    try {
      for (;;) {
        // Asked again after each wake-up: the session may have been deleted meanwhile.
        await this.access.session(caller, sessionId, this.budget());
        if (isTokenOver) throw new UnauthorizedError('the access token is no longer valid');
        const entry = await findMailboxEntry(this.reader.within(this.budget()), sessionId);
        if (entry !== undefined) return { turn: turnView(entry.turn), prompt: entry.prompt };
        const left = giveUpAt - performance.now();
        if (left <= 0 || callerGone.aborted || this.isStopping) return undefined;
        await wakeup.sleep(left, callerGone);
      }
    } finally {
      unsubscribe();
      unwatch();
      this.waiting.delete(wakeup);
    }
  }

  /** Idempotent. @throws NotFoundError for a turn that never was in this session's mailbox */
  async acknowledge(caller: Caller, sessionId: string, turnId: string, deadline: Deadline): Promise<void> {
    await this.access.session(caller, sessionId, deadline);
    const now = this.clock.now();
    await this.unitOfWork.run('mailbox.acknowledge', deadline, async (tx) => {
      await lockSession(tx, sessionId);
      if (!(await acknowledgeMailbox(tx, sessionId, usableId(turnId), now))) throw new NotFoundError('turn not found');
    });
  }

  private budget(): Deadline {
    return Deadline.after(this.env.preClaimBudgetMs);
  }
}
