import type { Deadline } from '../../common/deadline.js';
import { RolledBackError } from '../db-error.js';
import type { WaitBegins } from '../database-waits.js';
import { DeadlineQueue } from '../deadline-queue.js';
import { dialectOf } from '../dialect.js';
import { checkValues, statementOf } from '../statement.js';
import { Reader, type SqlResult, type SqlRow, type SqlValue } from '../unit-of-work.js';
import type { DataFile } from './data-file.js';
import type { SqliteConnection } from './sqlite-connection.js';

/** Reads on connections of their own, so that they see only what has been committed; opened read-only. */
export class SqliteReader extends Reader {
  readonly dialect = dialectOf('sqlite');
  private readonly queue: DeadlineQueue<SqliteConnection>;

  constructor(
    connections: readonly SqliteConnection[],
    private readonly file: DataFile,
    waitBegins?: WaitBegins,
  ) {
    super();
    this.queue = new DeadlineQueue(connections, waitBegins);
  }

  async query<Row = SqlRow>(
    deadline: Deadline,
    sql: string,
    params: readonly SqlValue[] = [],
  ): Promise<SqlResult<Row>> {
    const statement = statementOf(sql);
    checkValues(statement, params);
    const result = await this.queue.run(deadline, async (connection) => {
      for (;;) {
        try {
          return await connection.execute(statement, params, deadline);
        } catch (error) {
          // A reader of a WAL file is refused only while another process recovers or truncates the log.
          if (!(error instanceof RolledBackError)) throw error;
          deadline.throwIfOver();
        }
      }
    });
    return result as SqlResult<Row>;
  }

  override async ping(deadline: Deadline): Promise<void> {
    await this.file.assertInPlace();
    await super.ping(deadline);
  }

  async close(): Promise<void> {
    await this.queue.close();
  }
}
