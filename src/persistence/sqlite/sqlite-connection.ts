import type { Database } from 'sqlite3';
import type { DataSource } from 'typeorm';
import type { Deadline } from '../../common/deadline.js';
import { databaseErrorOf, type DatabaseError } from '../db-error.js';
import type { Statement } from '../statement.js';
import type { SqlResult, SqlRow, SqlValue } from '../unit-of-work.js';
import { PreparedStatements } from './prepared-statements.js';
import { rawDatabase } from './sqlite-data-sources.js';

// An interrupt that finds the statement still queued for a thread does nothing, so it is repeated until it ends.
const REPEAT_INTERRUPT_MS = 10;

/**
 * One connection, of which the caller makes sure that a single statement runs at a time: only so does an interrupt
 * hit the statement that it is meant for. TypeORM has opened it and closes it; statements go past its query runner,
 * which compiles each one anew.
 */
export class SqliteConnection {
  private readonly raw: Database;
  private readonly statements: PreparedStatements;

  constructor(dataSource: DataSource) {
    this.raw = rawDatabase(dataSource);
    this.statements = new PreparedStatements(this.raw);
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
      const result = await this.statements.run(statement.sqliteText, values, statement.returnsRows);
      return result as SqlResult<SqlRow>;
    } catch (thrown) {
      const error = databaseErrorOf('sqlite', thrown);
      throw error.kind === 'unavailable' ? deadline.expiry(error) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** BEGIN, COMMIT, ROLLBACK and the like: never interrupted. The failure is returned, not thrown. */
  async command(sql: string): Promise<DatabaseError | undefined> {
    try {
      await this.statements.run(sql, [], false);
      return undefined;
    } catch (thrown) {
      return databaseErrorOf('sqlite', thrown);
    }
  }

  /** To be called before the data source is destroyed, once nothing runs. */
  async close(): Promise<void> {
    await this.statements.close();
  }
}
