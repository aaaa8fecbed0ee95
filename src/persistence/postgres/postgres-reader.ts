import type { Pool } from 'pg';
import type { Deadline } from '../../common/deadline.js';
import { UNWATCHED, type WaitBegins } from '../database-waits.js';
import { RolledBackError } from '../db-error.js';
import { dialectOf } from '../dialect.js';
import { InFlight } from '../in-flight.js';
import { checkValues, statementOf } from '../statement.js';
import { Reader, type SqlResult, type SqlRow, type SqlValue } from '../unit-of-work.js';
import { PostgresSession } from './postgres-session.js';

/**
 * Single statements, each its own transaction, on a pool whose connections are read-only and end every statement
 * after a fixed time. A transaction just to set a shorter one would cost a second round trip; the deadline cancels.
 */
export class PostgresReader extends Reader {
  readonly dialect = dialectOf('postgres');
  private readonly inFlight = new InFlight();

  constructor(
    private readonly pool: Pool,
    private readonly waitBegins: WaitBegins = UNWATCHED,
  ) {
    super();
  }

  async query<Row = SqlRow>(
    deadline: Deadline,
    sql: string,
    params: readonly SqlValue[] = [],
  ): Promise<SqlResult<Row>> {
    const statement = statementOf(sql);
    checkValues(statement, params);
    return this.inFlight.track(deadline, async () => {
      for (;;) {
        deadline.throwIfOver();
        const session = await PostgresSession.borrow(this.pool, deadline, this.waitBegins);
        try {
          deadline.throwIfOver();
          const result = await session.execute(statement, params, deadline);
          session.return();
          return result as SqlResult<Row>;
        } catch (error) {
          this.inFlight.add(session.returnWhenIdle());
          if (!(error instanceof RolledBackError)) throw error;
          if (deadline.isOver) throw deadline.expiry(error);
        }
      }
    });
  }

  async close(): Promise<void> {
    await this.inFlight.close();
  }
}
