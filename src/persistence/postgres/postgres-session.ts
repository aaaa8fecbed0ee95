import type { Client } from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { Deadline } from '../../common/deadline.js';
import type { WaitBegins } from '../database-waits.js';
import { databaseErrorOf, type DatabaseError } from '../db-error.js';
import { succeedsWithin } from '../succeeds-within.js';
import type { Statement } from '../statement.js';
import type { SqlResult, SqlRow, SqlValue } from '../unit-of-work.js';
import { cancelBackend } from './cancel-backend.js';

// How long a cancelled statement or a ROLLBACK may take before the connection is given up instead of given back.
const CLEAN_UP_MS = 5000;
const REPEAT_CANCEL_MS = 20;

/**
 * A connection lent by the pool for one piece of work. Whoever waits on it is refused at the deadline; the statement
 * is then cancelled in the server, and the connection returns to the pool, clean, in its own time.
 */
export class PostgresSession {
  private running: Promise<unknown> = Promise.resolve();
  private cancelling: Promise<void> = Promise.resolve();

  private constructor(
    private readonly runner: QueryRunner,
    private readonly client: Client,
  ) {}

  /** @throws TemporarilyUnavailableError when none is free, or can be made, in time */
  static async borrow(dataSource: DataSource, deadline: Deadline, waitBegins: WaitBegins): Promise<PostgresSession> {
    const waitEnds = waitBegins();
    const runner = dataSource.createQueryRunner();
    const connecting = runner.connect() as Promise<Client>;
    const lent = await inTime(deadline, connecting, () => {
      // The pool cannot be told to forget the wait, so a connection that comes too late goes straight back.
      void connecting.then(
        () => runner.release(),
        () => undefined,
      );
    }).finally(waitEnds);
    return new PostgresSession(runner, lent);
  }

  /** @throws TemporarilyUnavailableError at the deadline or when the server is out of reach, else DatabaseError */
  async execute(statement: Statement, values: readonly SqlValue[], deadline: Deadline): Promise<SqlResult<SqlRow>> {
    const result = await this.send(statement.postgresText, values, deadline);
    return { rows: (result.records as SqlRow[] | undefined) ?? [], affected: result.affected ?? 0 };
  }

  /** Several statements of ours in one round trip, without values. */
  async command(sql: string, deadline: Deadline): Promise<void> {
    await this.send(sql, undefined, deadline);
  }

  /**
   * Sent to its end whatever the deadline says.
   *
   * @returns `refused` when it did certainly not commit, `lost` when it was sent and no reply came
   */
  async commit(): Promise<'committed' | { refused: DatabaseError } | { lost: DatabaseError }> {
    if (this.runner.isReleased) return { refused: databaseErrorOf('postgres', new Error('Connection terminated')) };
    try {
      // Past TypeORM, which hides the command's tag: COMMIT of a failed transaction is answered by ROLLBACK, no error.
      const { command } = await this.client.query('COMMIT');
      return command === 'COMMIT'
        ? 'committed'
        : { refused: databaseErrorOf('postgres', new Error(`${command} at COMMIT`)) };
    } catch (thrown) {
      const error = databaseErrorOf('postgres', thrown);
      return isConnectionLoss(error) ? { lost: error } : { refused: error };
    }
  }

  /** Gives the connection back without a transaction open on it, or closes it. Never throws. */
  async rollBackAndReturn(): Promise<void> {
    const clean = await succeedsWithin(CLEAN_UP_MS, async () => {
      await Promise.all([this.running, this.cancelling]);
      await this.client.query('ROLLBACK');
    });
    await (clean ? this.return() : this.discard());
  }

  /** Gives the connection back as it is: its transaction has ended, or it never had one. */
  async return(): Promise<void> {
    await this.runner.release();
  }

  /** Gives it back once a statement that was cancelled has come to its end. */
  async returnWhenIdle(): Promise<void> {
    const idle = await succeedsWithin(CLEAN_UP_MS, () => Promise.all([this.running, this.cancelling]));
    await (idle ? this.return() : this.discard());
  }

  /** Closes the connection; the pool makes another when it needs one. */
  private async discard(): Promise<void> {
    void this.client.end().catch(() => undefined);
    await this.runner.release();
  }

  private async send(sql: string, values: readonly SqlValue[] | undefined, deadline: Deadline) {
    const sent = this.runner.query(sql, values as unknown[] | undefined, true);
    this.running = sent.catch(() => undefined);
    return inTime(deadline, sent, () => {
      this.cancelling = this.stop(this.running);
    });
  }

  /** A request that finds the statement not yet begun is forgotten by the server, so it is repeated. */
  private async stop(running: Promise<unknown>): Promise<void> {
    const giveUp = Deadline.after(CLEAN_UP_MS);
    while (!giveUp.isOver) {
      await cancelBackend(this.client);
      if (await succeedsWithin(REPEAT_CANCEL_MS, () => running)) return;
    }
  }
}

/** The result, or the deadline's refusal; failures are translated. `onExpiry` runs once, before the refusal. */
async function inTime<T>(deadline: Deadline, result: Promise<T>, onExpiry: () => void): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      onExpiry();
      reject(deadline.expiry());
    }, deadline.remainingMs);
  });
  try {
    return await Promise.race([result.catch((thrown: unknown) => refuse(deadline, thrown)), expiry]);
  } finally {
    clearTimeout(timer);
  }
}

function refuse(deadline: Deadline, thrown: unknown): never {
  const error = databaseErrorOf('postgres', thrown);
  throw error.kind === 'unavailable' ? deadline.expiry(error) : error;
}

/** No reply to a COMMIT; a server that is stopping may have committed without being able to say so. */
function isConnectionLoss(error: DatabaseError): boolean {
  return error.kind === 'unavailable' && error.driverCode !== '57014' && error.driverCode !== '55P03';
}
