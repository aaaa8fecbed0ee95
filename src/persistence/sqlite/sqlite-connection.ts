import type { Database } from 'sqlite3';
import type { DataSource, QueryRunner } from 'typeorm';
import type { Deadline } from '../../common/deadline.js';
import { databaseErrorOf, type DatabaseError } from '../db-error.js';
import type { Statement } from '../statement.js';
import type { SqlResult, SqlRow, SqlValue } from '../unit-of-work.js';
import { rawDatabase } from './sqlite-data-sources.js';

// An interrupt that finds the statement still queued for a thread does nothing, so it is repeated until it ends.
const REPEAT_INTERRUPT_MS = 10;

/**
 * One connection, of which the caller makes sure that a single statement runs at a time: only so does an interrupt
 * hit the statement that it is meant for.
 */
export class SqliteConnection {
  private readonly runner: QueryRunner;
  private readonly raw: Database;

  constructor(dataSource: DataSource) {
    this.runner = dataSource.createQueryRunner();
    this.raw = rawDatabase(dataSource);
  }

  /**
   * Runs a statement and stops it inside SQLite at the deadline.
   *
   * @throws TemporarilyUnavailableError at the deadline, else DatabaseError
   */
  async execute(statement: Statement, values: readonly SqlValue[], deadline: Deadline): Promise<SqlResult<SqlRow>> {
    const interrupt = () => {
      this.raw.interrupt();
      timer = setTimeout(interrupt, REPEAT_INTERRUPT_MS);
    };
    let timer = setTimeout(interrupt, deadline.remainingMs);
    try {
      return await this.send(statement, values);
    } catch (thrown) {
      const error = databaseErrorOf('sqlite', thrown);
      throw error.kind === 'unavailable' ? deadline.expiry(error) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** BEGIN, COMMIT, ROLLBACK or a PRAGMA of ours: never interrupted. The failure is returned, not thrown. */
  async command(sql: string): Promise<DatabaseError | undefined> {
    try {
      await this.runner.query(sql);
      return undefined;
    } catch (thrown) {
      return databaseErrorOf('sqlite', thrown);
    }
  }

  private async send(statement: Statement, values: readonly SqlValue[]): Promise<SqlResult<SqlRow>> {
    // TypeORM chooses by the first word between a call that gives rows and one that gives a count. A leading space
    // keeps RETURNING's rows; the exact "INSERT " and its like give the count.
    const text = statement.returnsRows
      ? ` ${statement.sqliteText}`
      : statement.sqliteText.replace(/^(\w+)\s+/, (_, verb: string) => `${verb.toUpperCase()} `);
    const result = await this.runner.query(text, [...values], true);
    const rows = statement.returnsRows ? (result.records as SqlRow[]) : [];
    return { rows, affected: statement.returnsRows ? rows.length : (result.affected ?? 0) };
  }
}
