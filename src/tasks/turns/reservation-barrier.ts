import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Deadline } from '../../common/deadline.js';
import { Wakeup } from '../../common/wakeup.js';
import { Env } from '../../config/env.js';
import { EventBus } from '../../events/event-bus.js';

/** How often the rows are asked whatever has been heard: an event may have been lost with its transaction's reply. */
const LONGEST_SLEEP_MS = 500;

/** Where a turn waits that may not be opened while another one of its session is reserved for a dispatch. */
@Injectable()
export class ReservationBarrier implements OnModuleDestroy {
  private readonly waiting = new Set<Wakeup>();
  private isStopping = false;

  constructor(
    private readonly events: EventBus,
    private readonly env: Env,
  ) {}

  onModuleDestroy(): void {
    this.isStopping = true;
    for (const wakeup of this.waiting) wakeup.wake();
  }

  /**
   * @param deadline of one attempt; the wait between them has the budget of a hand-over
   * @param attempt undefined while the session has a reservation
   * @throws TemporarilyUnavailableError when it has one to the end
   */
  async pass<T>(
    sessionId: string,
    deadline: Deadline,
    attempt: (budget: Deadline) => Promise<T | undefined>,
  ): Promise<T> {
    const overall = deadline.withMilliseconds(this.env.deliveryBudgetMs);
    const wakeup = new Wakeup();
    const unsubscribe = this.events.subscribe((event) => {
      if ('sessionId' in event ? event.sessionId === sessionId : event.sessionIds.includes(sessionId)) wakeup.wake();
    });
    this.waiting.add(wakeup);
    try {
      let budget = deadline;
      for (;;) {
        const passed = await attempt(budget);
        if (passed !== undefined) return passed;
        if (this.isStopping) throw overall.expiry();
        await wakeup.sleep(Math.min(overall.remainingMs, LONGEST_SLEEP_MS));
        overall.throwIfOver();
        budget = deadline.withMilliseconds(Math.min(this.env.preClaimBudgetMs, overall.remainingMs));
      }
    } finally {
      unsubscribe();
      this.waiting.delete(wakeup);
    }
  }
}
