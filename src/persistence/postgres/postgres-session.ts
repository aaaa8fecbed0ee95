import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg';
import { Deadline } from '../../common/deadline.js';
import type { WaitBegins } from '../database-waits.js';
import { databaseErrorOf, RolledBackError, type DatabaseError } from '../db-error.js';
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
  private isBroken = false;
  private readonly onError = (): void => {
    this.isBroken = true;
  };

  private constructor(private readonly client: PoolClient) {
    // The pool listens only while nobody has it; a connection that breaks between two statements would end the process.
    client.on('error', this.onError);
  }

  /** @throws TemporarilyUnavailableError when none is free, or can be made, in time */
  static async borrow(pool: Pool, deadline: Deadline, waitBegins: WaitBegins): Promise<PostgresSession> {
    const waitEnds = waitBegins();
    const connecting = pool.connect();
    const lent = await inTime(deadline, connecting, () => {
      // The pool cannot be told to forget the wait, so a connection that comes too late goes straight back.
      void connecting.then(
        (client) => client.release(),
        () => undefined,
      );
    }).finally(waitEnds);
    return new PostgresSession(lent);
  }

  /** @throws TemporarilyUnavailableError at the deadline or when the server is out of reach, else DatabaseError */
  async execute(statement: Statement, values: readonly SqlValue[], deadline: Deadline): Promise<SqlResult<SqlRow>> {
    const { postgresName: name, postgresText: text } = statement;
    const query = { ...(name === undefined ? {} : { name }), text, values: values as SqlValue[] };
    const { rows, rowCount } = await this.send<SqlRow>(query, deadline);
    return { rows, affected: rowCount ?? 0 };
  }

  /** Several statements of ours in one round trip, without values. */
  async command(sql: string, deadline: Deadline): Promise<void> {
    await this.send({ text: sql }, deadline);
  }

  /**
   * Sent to its end whatever the deadline says.
   *
   * @returns `refused` when it did certainly not commit, `lost` when it was sent and no reply came
   */
  async commit(): Promise<'committed' | { refused: DatabaseError } | { lost: DatabaseError }> {
    if (this.isBroken) return { refused: databaseErrorOf('postgres', new Error('Connection terminated')) };
    try {
      // COMMIT of a failed transaction is answered by ROLLBACK, no error.
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
    if (clean) this.return();
    else this.discard();
  }

  /** Gives the connection back as it is: its transaction has ended, or it never had one. */
  return(): void {
    this.release(this.isBroken);
  }

  /** Gives it back once a statement that was cancelled has come to its end. */
  async returnWhenIdle(): Promise<void> {
    const idle = await succeedsWithin(CLEAN_UP_MS, () => Promise.all([this.running, this.cancelling]));
    if (idle) this.return();
    else this.discard();
  }

  /** Closes the connection; the pool makes another when it needs one. */
  private discard(): void {
    this.release(true);
  }

  private release(isToBeClosed: boolean): void {
    this.client.off('error', this.onError);
    this.client.release(isToBeClosed);
  }

  private async send<Row extends SqlRow>(query: QueryConfig, deadline: Deadline): Promise<QueryResult<Row>> {
    const sent = this.client.query<Row>(query).catch((thrown: unknown) => {
      if (!isStale(thrown)) throw thrown;
      // Only this connection believes in the statement; on another one the work may run again.
      this.isBroken = true;
      throw new RolledBackError(databaseErrorOf('postgres', thrown));
    });
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

/** The server has dropped the prepared statement, or a column it gives has got another type. */
function isStale(thrown: unknown): boolean {
  const { code, routine } = thrown as { code?: unknown; routine?: unknown };
  return code === '26000' || (code === '0A000' && routine === 'RevalidateCachedQuery');
}

function refuse(deadline: Deadline, thrown: unknown): never {
  const error = databaseErrorOf('postgres', thrown);
  throw error.kind === 'unavailable' ? deadline.expiry(error) : error;
}

/** No reply to a COMMIT; a server that is stopping may have committed without being able to say so. */
function isConnectionLoss(error: DatabaseError): boolean {
  return error.kind === 'unavailable' && error.driverCode !== '57014' && error.driverCode !== '55P03';
}
