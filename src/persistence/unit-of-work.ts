import type { Deadline } from '../common/deadline.js';
import { TemporarilyUnavailableError } from '../common/domain-error.js';
import type { Dialect } from './dialect.js';

/** What may be bound to a statement. Times are {@link Instant} strings, booleans are 0 and 1. */
export type SqlValue = string | number | null;

/** A row as both engines give it: times as ISO strings with milliseconds, whole numbers as numbers. */
export type SqlRow = Record<string, string | number | null>;

export interface SqlResult<Row> {
  readonly rows: readonly Row[];
  /** Rows changed by an INSERT, UPDATE or DELETE; rows returned for a statement with RETURNING. */
  readonly affected: number;
}

/**
 * Runs one statement. Placeholders are `$1 … $n` on both engines. Values are always bound; statement text comes
 * from constants and the {@link Dialect} alone.
 */
export interface SqlExecutor {
  readonly dialect: Dialect;
  query<Row = SqlRow>(sql: string, params?: readonly SqlValue[]): Promise<SqlResult<Row>>;
}

/** An open write transaction. Only {@link UnitOfWork.run} makes one; it is useless once `work` has returned. */
export interface Tx extends SqlExecutor {
  readonly deadline: Deadline;
}

/**
 * One write transaction at a time per session of work. BEGIN, COMMIT and ROLLBACK are issued and checked here.
 *
 * `work` does no input or output but through `tx`, keeps no effect outside it, and may be run again from the start
 * after the database itself rolled it back (dead-lock, serialisation, busy), always within the deadline.
 * Resolves only after COMMIT has been acknowledged.
 */
export abstract class UnitOfWork {
  abstract readonly dialect: Dialect;

  /**
   * @param name for logs and tests only, e.g. `bundle.claim`
   * @throws TemporarilyUnavailableError when the deadline passed, or the database was out of reach, before COMMIT was sent: nothing was changed
   * @throws CommitOutcomeUnknownError when the connection died while COMMIT was under way
   */
  abstract run<T>(name: string, deadline: Deadline, work: (tx: Tx) => Promise<T>): Promise<T>;
}

/** Reads what has been committed, outside any write transaction. Refuses to write. */
export abstract class Reader {
  abstract readonly dialect: Dialect;

  /** @throws TemporarilyUnavailableError when the deadline passed or the database was out of reach */
  abstract query<Row = SqlRow>(deadline: Deadline, sql: string, params?: readonly SqlValue[]): Promise<SqlResult<Row>>;

  /** Resolves when the database is within reach. @throws when it is not, within the deadline */
  async ping(deadline: Deadline): Promise<void> {
    await this.query(deadline, 'SELECT 1');
  }

  /** The same reads behind the interface that transactions have, for queries that serve both. */
  within(deadline: Deadline): SqlExecutor {
    return { dialect: this.dialect, query: (sql, params) => this.query(deadline, sql, params) };
  }
}

/**
 * COMMIT was sent and no reply came: only the rows can tell whether it happened (R4a). To a caller whom nobody asks them
 * for it is a database that is away, like one that was lost earlier.
 */
export class CommitOutcomeUnknownError extends TemporarilyUnavailableError {
  constructor(options: { cause: unknown }) {
    super('the connection to the database was lost before it had confirmed; send the same request again', options);
  }
}
