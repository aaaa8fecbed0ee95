import { MigrationExecutor, type DataSource, type QueryRunner } from 'typeorm';
import { MIGRATIONS } from '../../migrations/index.js';
import { StartupError } from '../common/startup-error.js';
import { databaseErrorOf } from './db-error.js';
import type { Engine } from './dialect.js';
import { ensurePendingIdIndex } from './pending-id-index.js';

// How long the start waits for another process that is migrating or writing.
const LOCK_WAIT_MS = 15_000;
// Any number that nothing else in the database uses.
const POSTGRES_LOCK = 4_711_001;

const BEGIN: Record<Engine, string[]> = {
  // Outside the transaction, where it has an effect: rebuilding a table must not cascade.
  sqlite: [`PRAGMA busy_timeout = ${LOCK_WAIT_MS}`, 'PRAGMA foreign_keys = OFF', 'BEGIN IMMEDIATE'],
  postgres: ['BEGIN', `SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`, `SELECT pg_advisory_xact_lock(${POSTGRES_LOCK})`],
};

/**
 * Brings the schema up to date in one transaction: all of it or nothing, and of two processes that start at once the
 * second finds the work done.
 *
 * @throws StartupError
 */
export async function migrate(dataSource: DataSource, engine: Engine): Promise<void> {
  const runner = dataSource.createQueryRunner();
  try {
    for (const statement of BEGIN[engine]) await runner.query(statement);
    try {
      const executor = new MigrationExecutor(dataSource, runner);
      executor.transaction = 'none';
      await executor.executePendingMigrations();
      await refuseNewerDatabase(runner);
      await ensurePendingIdIndex(runner, engine);
      await runner.query('COMMIT');
    } catch (error) {
      await runner.query('ROLLBACK').catch(() => undefined);
      throw error;
    } finally {
      // Also when the connection broke: then there is nothing to set, and the first error is the one to tell.
      if (engine === 'sqlite') await runner.query('PRAGMA foreign_keys = ON').catch(() => undefined);
    }
  } catch (error) {
    if (error instanceof StartupError) throw error;
    const { message } = databaseErrorOf(engine, error);
    throw new StartupError(`cannot migrate the database: ${message}`, { cause: error });
  } finally {
    await runner.release();
  }
}

/** An older program would read rows whose meaning it does not know. */
async function refuseNewerDatabase(runner: QueryRunner): Promise<void> {
  const known = new Set<string>(MIGRATIONS.map(({ name }) => name));
  const executed = (await runner.query('SELECT name FROM migrations')) as { name: string }[];
  const unknown = executed.find(({ name }) => !known.has(name));
  if (unknown !== undefined) {
    throw new StartupError(`the database was made by a newer version of this program (it has ${unknown.name})`);
  }
}
