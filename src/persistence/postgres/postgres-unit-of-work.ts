import type { Pool } from 'pg';
import type { Deadline } from '../../common/deadline.js';
import { UNWATCHED, type WaitBegins } from '../database-waits.js';
import { RolledBackError } from '../db-error.js';
import { dialectOf } from '../dialect.js';
import { InFlight } from '../in-flight.js';
import { OpenTx } from '../open-tx.js';
import { succeedsWithin } from '../succeeds-within.js';
import { CommitOutcomeUnknownError, UnitOfWork, type Tx } from '../unit-of-work.js';
import { PostgresSession } from './postgres-session.js';

/**
 * Transactions at READ COMMITTED, each on a connection of the pool. The server's own time limits are set with BEGIN,
 * in one round trip, as a net below the deadline: they hold even if this process can no longer cancel anything.
 */
export class PostgresUnitOfWork extends UnitOfWork {
  readonly dialect = dialectOf('postgres');
  private readonly inFlight = new InFlight();

  constructor(
    private readonly pool: Pool,
    private readonly waitBegins: WaitBegins = UNWATCHED,
  ) {
    super();
  }

  async run<T>(_name: string, deadline: Deadline, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.inFlight.track(deadline, async () => {
      for (;;) {
        try {
          return await this.once(deadline, work);
        } catch (error) {
          if (!(error instanceof RolledBackError)) throw error;
          if (deadline.isOver) throw deadline.expiry(error);
        }
      }
    });
  }

  /** Accepts nothing more and waits for what was accepted, and for rollbacks that outlive their callers. */
  async close(): Promise<void> {
    await this.inFlight.close();
  }

  private async once<T>(deadline: Deadline, work: (tx: Tx) => Promise<T>): Promise<T> {
    deadline.throwIfOver();
    const session = await PostgresSession.borrow(this.pool, deadline, this.waitBegins);
    try {
      deadline.throwIfOver();
      await session.command(begin(deadline.remainingMs), deadline);
      const tx = new OpenTx(this.dialect, deadline, (statement, values) =>
        session.execute(statement, values, deadline),
      );
      const value = await tx.perform(work);
      deadline.throwIfOver();
      await commit(session, deadline);
      session.return();
      return value;
    } catch (error) {
      // The caller hears at the deadline, while the server may take longer to let go.
      const returned = session.rollBackAndReturn();
      this.inFlight.add(returned);
      await succeedsWithin(deadline.remainingMs, () => returned);
      throw error;
    }
  }
}

function begin(milliseconds: number): string {
  // 0 would mean no limit at all.
  const limit = Math.max(1, milliseconds);
  return (
    'BEGIN ISOLATION LEVEL READ COMMITTED; ' +
    `SET LOCAL statement_timeout = ${limit}; SET LOCAL lock_timeout = ${limit}; ` +
    `SET LOCAL idle_in_transaction_session_timeout = ${limit + IDLE_GRACE_MS}`
  );
}

// A process that is stopped or cut off in the middle of a transaction must not hold its row locks for ever.
const IDLE_GRACE_MS = 10_000;

async function commit(session: PostgresSession, deadline: Deadline): Promise<void> {
  const outcome = await session.commit();
  if (outcome === 'committed') return;
  if ('lost' in outcome) throw new CommitOutcomeUnknownError({ cause: outcome.lost });
  throw outcome.refused.kind === 'unavailable' ? deadline.expiry(outcome.refused) : outcome.refused;
}
