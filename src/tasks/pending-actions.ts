import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import { Deadline } from '../common/deadline.js';
import type { SqlExecutor } from '../persistence/unit-of-work.js';
import { UnitOfWork } from '../persistence/unit-of-work.js';
import { Clarifications, type WaitingSession } from './clarification.port.js';
import { allocateEpoch } from './persistence/server-starts.repository.js';
import type { PendingActionRevision } from './views.js';

const ALLOCATION_BUDGET_MS = 30_000;

export class PendingActionsSnapshot {
  constructor(
    private readonly waiting: readonly WaitingSession[],
    readonly revision: PendingActionRevision,
  ) {}

  get isEmpty(): boolean {
    return this.waiting.length === 0;
  }

  ofTask(taskId: string): { readonly task: boolean; readonly primary: boolean } {
    const sessions = this.waiting.filter((session) => session.task_id === taskId);
    return { task: sessions.length > 0, primary: sessions.some((session) => session.is_primary === 1) };
  }

  ofSession(sessionId: string): boolean {
    return this.waiting.some((session) => session.session_id === sessionId);
  }
}

/** Which sessions wait for somebody, each look numbered so that a client can drop the older of two. */
@Injectable()
export class PendingActions implements OnApplicationBootstrap {
  private epoch = 0;
  private sequence = 0;
  private announce: (epoch: number) => void = () => undefined;

  /** Resolves with the epoch of this start, once it is allocated. */
  readonly started = new Promise<number>((resolve) => (this.announce = resolve));

  constructor(
    private readonly clarifications: Clarifications,
    private readonly unitOfWork: UnitOfWork,
    private readonly clock: Clock,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    this.epoch = await this.unitOfWork.run('server.start', Deadline.after(ALLOCATION_BUDGET_MS), (tx) =>
      allocateEpoch(tx, this.clock.now()),
    );
    this.announce(this.epoch);
  }

  /** The number of a look that is about to be made. */
  nextRevision(): PendingActionRevision {
    this.sequence += 1;
    return { epoch: this.epoch, sequence: this.sequence };
  }

  /** @param revision numbered before the read: what a later number shows is never older than that number's own read */
  async ofTasks(
    sql: SqlExecutor,
    taskIds: readonly string[],
    revision = this.nextRevision(),
  ): Promise<PendingActionsSnapshot> {
    return new PendingActionsSnapshot(await this.clarifications.port.sessionsWithActiveBundle(sql, taskIds), revision);
  }
}
