import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { Deadline } from '../../common/deadline.js';
import { EventBus } from '../../events/event-bus.js';
import { Log } from '../../observability/log.js';
import { Reader, UnitOfWork } from '../../persistence/unit-of-work.js';
import { listDeliveryIntents, restoreBundle, type DeliveryIntent } from '../persistence/restore-bundle.tx.js';
import { OutcomeDelivery } from './outcome-delivery.js';

const BUDGET_MS = 30_000;
const PERIOD_MS = 60_000;

/**
 * Claimed bundles that nobody is handing over: what a process that was killed between claim and hand-over leaves, or a
 * restore that failed while the database was away. Restored to pending while their turn is current and the session goes
 * on, otherwise kept as history. Runs before the first request is admitted, where a failure stops the start, and once a
 * minute over what no hand-over of this process owns.
 */
@Injectable()
export class IntentRecovery implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;

  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly delivery: OutcomeDelivery,
    private readonly events: EventBus,
    private readonly log: Log,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    for (const intent of await this.intents()) await this.recover(intent);
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
    this.running ??= this.recoverAll().finally(() => (this.running = undefined));
    await this.running;
  }

  private async recoverAll(): Promise<void> {
    try {
      for (const intent of await this.intents()) {
        await this.recover(intent).catch((error: unknown) => {
          this.log.error('delivery.recovery_failed', { error, pending_id: intent.pendingId });
        });
      }
    } catch (error) {
      this.log.warn('recovery.failed', { error });
    }
  }

  private intents(): Promise<readonly DeliveryIntent[]> {
    return listDeliveryIntents(this.reader.within(Deadline.after(BUDGET_MS)));
  }

  private async recover(intent: DeliveryIntent): Promise<void> {
    const restored = await this.unitOfWork.run('delivery.recover', Deadline.after(BUDGET_MS), (tx) =>
      restoreBundle(tx, intent, this.clock.now(), () => this.delivery.isOwned(intent.pendingId)),
    );
    if (restored.kind === 'settled' || restored.kind === 'gone') return;
    this.log.warn('delivery.recovered', { pending_id: intent.pendingId, outcome: restored.kind });
    this.events.publish(restored.events);
  }
}
