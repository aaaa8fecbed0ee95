import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { Deadline } from '../../common/deadline.js';
import { NotFoundError } from '../../common/domain-error.js';
import { usableId } from '../../common/ids.js';
import { Wakeup } from '../../common/wakeup.js';
import { Env } from '../../config/env.js';
import { EventBus } from '../../events/event-bus.js';
import type { Caller } from '../../identity/caller.js';
import { Reader, UnitOfWork } from '../../persistence/unit-of-work.js';
import { TaskAccess } from '../authorization/task-access.js';
import { lockSession } from '../persistence/sessions.repository.js';
import { acknowledgeMailbox, findMailboxEntry } from '../persistence/turns.repository.js';
import { turnView, type TurnView } from '../views.js';

/** The next turn that waits for a pull-mode agent. Reading it changes nothing until the agent acknowledges. */
@Injectable()
export class Mailbox {
  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly access: TaskAccess,
    private readonly events: EventBus,
    private readonly env: Env,
  ) {}

  /**
   * @param waitSeconds how long to wait for an entry when there is none
   * @param signal ends the wait at once: the caller has gone, or the server stops
   */
  async read(
    caller: Caller,
    sessionId: string,
    waitSeconds: number,
    signal: AbortSignal,
  ): Promise<{ turn: TurnView; prompt: string } | undefined> {
    const wakeup = new Wakeup();
    const unsubscribe = this.events.subscribe((event) => {
      if ('sessionId' in event ? event.sessionId === sessionId : event.sessionIds.includes(sessionId)) wakeup.wake();
    });
    const giveUpAt = performance.now() + waitSeconds * 1000;
    try {
      for (;;) {
        // Asked again after each wake-up: the session may have been deleted meanwhile.
        await this.access.session(caller, sessionId, this.budget());
        const entry = await findMailboxEntry(this.reader.within(this.budget()), sessionId);
        if (entry !== undefined) return { turn: turnView(entry.turn), prompt: entry.prompt };
        const left = giveUpAt - performance.now();
        if (left <= 0 || signal.aborted) return undefined;
        await wakeup.sleep(left, signal);
      }
    } finally {
      unsubscribe();
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
