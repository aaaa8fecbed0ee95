import { CallerGoneError, type Deadline } from '../common/deadline.js';
import { TemporarilyUnavailableError } from '../common/domain-error.js';
import { RolledBackError } from './db-error.js';
import type { Dialect } from './dialect.js';
import { checkValues, statementOf, type Statement } from './statement.js';
import type { SqlResult, SqlRow, SqlValue, Tx } from './unit-of-work.js';

/** Runs one statement on the transaction's own connection; its failures are already translated. */
export type Execute = (statement: Statement, values: readonly SqlValue[]) => Promise<SqlResult<SqlRow>>;

/**
 * The transaction that `work` sees. It lets one statement run at a time, asks the deadline before each, and once
 * one has failed lets no other run: PostgreSQL would refuse them, SQLite would go on without the failed one.
 */
export class OpenTx implements Tx {
  private last: Promise<unknown> = Promise.resolve();
  private unfinished = 0;
  private closed = false;
  private failure: { readonly error: unknown } | undefined;

  constructor(
    readonly dialect: Dialect,
    readonly deadline: Deadline,
    private readonly execute: Execute,
  ) {}

  query<Row = SqlRow>(sql: string, params: readonly SqlValue[] = []): Promise<SqlResult<Row>> {
    if (this.closed) return Promise.reject(closedError());
    this.unfinished += 1;
    const result = this.last.then(() => this.one(sql, params));
    // Also marks the rejection as seen, in case `work` never awaits it.
    this.last = result.then(
      () => (this.unfinished -= 1),
      () => (this.unfinished -= 1),
    );
    return result as Promise<SqlResult<Row>>;
  }

  /** Runs `work` and leaves the transaction closed. Throws what it must be rolled back for. */
  async perform<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    let value: T;
    try {
      value = await work(this);
    } catch (error) {
      await this.close();
      throw this.decisive() ?? error;
    }
    const left = this.unfinished;
    await this.close();
    if (this.failure !== undefined) throw this.failure.error;
    if (left > 0) throw new Error('the work of a transaction returned before its statements had ended');
    return value;
  }

  private async one(sql: string, params: readonly SqlValue[]): Promise<SqlResult<SqlRow>> {
    if (this.closed) throw closedError();
    if (this.failure !== undefined) throw this.failure.error;
    try {
      const statement = statementOf(sql);
      checkValues(statement, params);
      this.deadline.throwIfOver();
      return await this.execute(statement, params);
    } catch (error) {
      this.failure ??= { error };
      throw error;
    }
  }

  private async close(): Promise<void> {
    this.closed = true;
    await this.last;
  }

  /** A failure that says what to do next, whatever `work` made of it. */
  private decisive(): unknown {
    const error = this.failure?.error;
    const decides =
      error instanceof RolledBackError ||
      error instanceof TemporarilyUnavailableError ||
      error instanceof CallerGoneError;
    return decides ? error : undefined;
  }
}

function closedError(): Error {
  return new Error('this transaction is over; only the work given to UnitOfWork.run may use it');
}
