import { DataSource } from 'typeorm';
import { StartupError } from '../../common/startup-error.js';
import type { DatabaseUrl } from '../database-url.js';
import { databaseErrorOf } from '../db-error.js';
import type { InstanceLock } from '../instance-lock.js';
import { SILENT_LOGGER } from '../silent-logger.js';
import { ensureDataFile, setBusyTimeout, SQLITE_DRIVER } from './sqlite-data-sources.js';

// A server that is just ending is waited for, so that a restart need not be timed.
const WAIT_MS = 500;

/**
 * An exclusive transaction, never ended, on a database file beside the data. The operating system frees it with the
 * process; a file with a process id in it would outlive a crash.
 */
export async function lockSqlite(url: DatabaseUrl & { engine: 'sqlite' }): Promise<InstanceLock> {
  let dataSource: DataSource | undefined;
  try {
    const file = await ensureDataFile(`${await ensureDataFile(url.file)}.lock`);
    dataSource = await new DataSource({
      type: 'sqlite',
      driver: SQLITE_DRIVER,
      database: file,
      entities: [],
      logger: SILENT_LOGGER,
    }).initialize();
    await setBusyTimeout(dataSource, WAIT_MS);
    // Nothing is ever written, so no journal need lie about beside it.
    await dataSource.query('PRAGMA journal_mode = MEMORY');
    await dataSource.query('BEGIN EXCLUSIVE');
  } catch (thrown) {
    await dataSource?.destroy();
    const error = databaseErrorOf('sqlite', thrown);
    if (error.driverCode === 'SQLITE_BUSY') {
      throw new StartupError(`another server is running on ${url.display}; stop it first`, { cause: error });
    }
    throw new StartupError(`cannot open the database ${url.display}: ${error.message}`, { cause: error });
  }
  const held = dataSource;
  return { release: () => held.destroy() };
}
