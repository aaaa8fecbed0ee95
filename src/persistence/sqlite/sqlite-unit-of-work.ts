import type { Deadline } from '../../common/deadline.js';
import { RolledBackError } from '../db-error.js';
import type { WaitBegins } from '../database-waits.js';
import { DeadlineQueue } from '../deadline-queue.js';
import { dialectOf } from '../dialect.js';
import { OpenTx } from '../open-tx.js';
import { CommitOutcomeUnknownError, UnitOfWork, type Tx } from '../unit-of-work.js';
import type { SqliteConnection } from './sqlite-connection.js';

/**
 * Every write of this process, one transaction after the other on one connection: SQLite has one writer anyway, and
 * TypeORM gives a SQLite data source one query runner, on which overlapping transactions would become savepoints of
 * each other. Another process may hold the lock; then BEGIN is tried in short slices until the deadline.
 */
export class SqliteUnitOfWork extends UnitOfWork {
  readonly dialect = dialectOf('sqlite');
  private readonly queue: DeadlineQueue;

  /** @param connection its `busy_timeout` is the length of one slice: a busy wait cannot be interrupted */
  constructor(
    private readonly connection: SqliteConnection,
    waitBegins?: WaitBegins,
  ) {
    super();
    this.queue = new DeadlineQueue(waitBegins);
  }

  async run<T>(_name: string, deadline: Deadline, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.queue.run(deadline, async () => {
      for (;;) {
        try {
          return await this.once(deadline, work);
        } catch (error) {
          if (!(error instanceof RolledBackError)) throw error;
          deadline.throwIfOver();
        }
      }
    });
  }

  /** Accepts nothing more and waits for what was accepted. */
  async close(): Promise<void> {
    await this.queue.close();
  }

  private async once<T>(deadline: Deadline, work: (tx: Tx) => Promise<T>): Promise<T> {
    await this.begin(deadline);
    try {
      const tx = new OpenTx(this.dialect, deadline, (statement, values) =>
        this.connection.execute(statement, values, deadline),
      );
      const value = await tx.perform(work);
      deadline.throwIfOver();
      await this.commit(deadline);
      return value;
    } catch (error) {
      await this.rollBack();
      throw error;
    }
  }

  private async begin(deadline: Deadline): Promise<void> {
    for (;;) {
      deadline.throwIfOver();
      const failure = await this.connection.command('BEGIN IMMEDIATE');
      if (failure === undefined) return;
      if (failure.kind === 'unavailable') throw deadline.expiry(failure);
      if (failure.message.includes('within a transaction')) await this.rollBack();
      else if (failure.kind === 'defect') throw failure;
    }
  }

  /** Never interrupted: what SQLite answers decides. */
  private async commit(deadline: Deadline): Promise<void> {
    const failure = await this.connection.command('COMMIT');
    if (failure === undefined) return;
    // After a failed write to the disk a commit mark may or may not be in the file when it is next recovered.
    if (failure.driverCode === 'SQLITE_IOERR') throw new CommitOutcomeUnknownError({ cause: failure });
    throw failure.kind === 'unavailable' ? deadline.expiry(failure) : failure;
  }

  /**
   * SQLite itself has rolled back when it interrupted a write or the disk failed; then there is nothing left to undo
   * and the command says so. Should a transaction be left open all the same, the next BEGIN finds it and ends it.
   */
  private async rollBack(): Promise<void> {
    await this.connection.command('ROLLBACK');
  }
}
