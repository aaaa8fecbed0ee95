import { chmod, mkdir, open, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import sqlite3 from 'sqlite3';
import { DataSource } from 'typeorm';
import { MIGRATIONS } from '../../../migrations/index.js';
import { SILENT_LOGGER } from '../silent-logger.js';

/**
 * The driver without `verbose()`, which TypeORM calls on it: that records a stack trace at every call for messages that
 * nobody reads, a third of the time that this process spends on an answer.
 */
export const SQLITE_DRIVER: typeof sqlite3 = Object.assign(Object.create(sqlite3) as typeof sqlite3, {
  verbose: () => sqlite3,
});

/**
 * Makes the file with mode 0600 and its missing folders with 0700; what exists is left alone.
 *
 * A file of this process that SQLite has open must never be opened and closed here: closing it would drop the
 * locks that SQLite holds on it. `wx` does not open a file that exists.
 */
export async function ensureDataFile(file: string): Promise<string> {
  const path = resolve(file);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  try {
    const handle = await open(path, 'wx', 0o600);
    await handle.close();
    // The mode given above is narrowed by the umask, which may be odd.
    await chmod(path, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  // Two names of one file must meet at one lock.
  return join(await realpath(dirname(path)), basename(await realpath(path)));
}

/** The one writing connection. `busyTimeoutMs` is how long a statement waits for another process's lock. */
export async function openSqliteWriter(file: string, busyTimeoutMs: number): Promise<DataSource> {
  const dataSource = await opened(
    new DataSource({
      type: 'sqlite',
      driver: SQLITE_DRIVER,
      database: file,
      enableWAL: true,
      entities: [],
      migrations: MIGRATIONS,
      logger: SILENT_LOGGER,
    }),
  );
  // FULL: with NORMAL a power cut can take back an acknowledged answer.
  await dataSource.query('PRAGMA synchronous = FULL');
  await setBusyTimeout(dataSource, busyTimeoutMs);
  return dataSource;
}

/** Opened after the writer, which makes the log that a read-only connection cannot make. */
export async function openSqliteReader(file: string, busyTimeoutMs: number): Promise<DataSource> {
  const dataSource = await opened(
    new DataSource({
      type: 'sqlite',
      driver: SQLITE_DRIVER,
      database: file,
      flags: sqlite3.OPEN_READONLY,
      entities: [],
      migrations: [],
      logger: SILENT_LOGGER,
    }),
  );
  await setBusyTimeout(dataSource, busyTimeoutMs);
  return dataSource;
}

/** By PRAGMA: the driver's own setting freezes the event loop while a statement runs. */
export async function setBusyTimeout(dataSource: DataSource, milliseconds: number): Promise<void> {
  await dataSource.query(`PRAGMA busy_timeout = ${milliseconds}`);
}

async function opened(dataSource: DataSource): Promise<DataSource> {
  await dataSource.initialize();
  // Without it one slow statement beside fast ones blocks the event loop until it ends.
  rawDatabase(dataSource).serialize();
  return dataSource;
}

export function rawDatabase(dataSource: DataSource): sqlite3.Database {
  return (dataSource.driver as unknown as { databaseConnection: sqlite3.Database }).databaseConnection;
}
