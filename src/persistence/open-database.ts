import type { DataSource } from 'typeorm';
import { StartupError } from '../common/startup-error.js';
import type { DatabaseUse, WaitBegins } from './database-waits.js';
import type { DatabaseUrl } from './database-url.js';
import { databaseErrorOf } from './db-error.js';
import { migrate } from './migrate.js';
import { openPostgresReader, openPostgresWriter, rawPool } from './postgres/postgres-data-sources.js';
import { PostgresReader } from './postgres/postgres-reader.js';
import { PostgresUnitOfWork } from './postgres/postgres-unit-of-work.js';
import { DataFile } from './sqlite/data-file.js';
import { SqliteConnection } from './sqlite/sqlite-connection.js';
import { ensureDataFile, openSqliteReader, openSqliteWriter, setBusyTimeout } from './sqlite/sqlite-data-sources.js';
import { SqliteReader } from './sqlite/sqlite-reader.js';
import { SqliteUnitOfWork } from './sqlite/sqlite-unit-of-work.js';
import type { Reader, UnitOfWork } from './unit-of-work.js';

export interface DatabaseSettings {
  readonly url: DatabaseUrl;
  /** PostgreSQL: connections for transactions, and as many for reads. SQLite has one to write and at most two to read. */
  readonly poolSize: number;
  /** No read, and no wait for a connection, takes longer than this, whatever its deadline: the pre-claim budget. */
  readonly boundMs: number;
  /** Default true. False opens the database as it is, for tests of the migrations. */
  readonly migrate?: boolean;
  /** To be told of waits for a connection. */
  readonly waits?: { of(use: DatabaseUse): WaitBegins };
}

/** An open, migrated database. */
export interface Database {
  readonly unitOfWork: UnitOfWork;
  readonly reader: Reader;
  /** Lets what has begun end, then closes every connection. */
  close(): Promise<void>;
}

// A wait for another process's lock cannot be interrupted, so it is made of slices of this length.
const BUSY_SLICE_MS = 50;

// So that a look-up need not wait for a long list. A statement that runs holds one of libuv's four threads, and with the
// writer's these leave one for everything else; with as many as there are threads, whoever could commit finds none.
const MOST_SQLITE_READERS = 2;

/**
 * Opens the database and migrates it. Does not ask whether a server has it open: commands work beside one.
 *
 * @throws StartupError
 */
export async function openDatabase(settings: DatabaseSettings): Promise<Database> {
  try {
    return await (settings.url.engine === 'sqlite'
      ? openSqlite(settings.url.file, settings)
      : openPostgres(settings.url.connectionString, settings));
  } catch (error) {
    if (error instanceof StartupError) throw error;
    const { message } = databaseErrorOf(settings.url.engine, error);
    throw new StartupError(`cannot open the database ${settings.url.display}: ${message}`, { cause: error });
  }
}

async function openSqlite(name: string, settings: DatabaseSettings): Promise<Database> {
  const file = await ensureDataFile(name);
  const writer = await openSqliteWriter(file, BUSY_SLICE_MS);
  const opened = [writer];
  const { writing, reading, dataFile } = await orClose(opened, async () => {
    if (settings.migrate !== false) await migrate(writer, 'sqlite');
    await setBusyTimeout(writer, BUSY_SLICE_MS);
    const readers = Math.min(settings.poolSize, MOST_SQLITE_READERS);
    while (opened.length <= readers) opened.push(await openSqliteReader(file, BUSY_SLICE_MS));
    const [first, ...others] = opened.map((each) => new SqliteConnection(each));
    return { writing: first as SqliteConnection, reading: others, dataFile: await DataFile.at(file) };
  });
  const unitOfWork = new SqliteUnitOfWork(writing, settings.waits?.of('write'));
  const reader = new SqliteReader(reading, dataFile, settings.waits?.of('read'));
  return {
    unitOfWork,
    reader,
    close: async () => {
      await Promise.all([unitOfWork.close(), reader.close()]);
      for (const connection of [writing, ...reading]) await connection.close();
      // The writer last: whoever closes last folds the log into the file, which a read-only connection cannot.
      for (const dataSource of opened.reverse()) await dataSource.destroy();
    },
  };
}

async function openPostgres(connectionString: string, settings: DatabaseSettings): Promise<Database> {
  const pool = { connectionString, poolSize: settings.poolSize, boundMs: settings.boundMs };
  const writer = await openPostgresWriter(pool);
  const reader = await orClose([writer], async () => {
    if (settings.migrate !== false) await migrate(writer, 'postgres');
    return openPostgresReader(pool);
  });
  const unitOfWork = new PostgresUnitOfWork(rawPool(writer), settings.waits?.of('write'));
  const reads = new PostgresReader(rawPool(reader), settings.waits?.of('read'));
  return {
    unitOfWork,
    reader: reads,
    close: async () => {
      await Promise.all([unitOfWork.close(), reads.close()]);
      await Promise.all([reader.destroy(), writer.destroy()]);
    },
  };
}

async function orClose<T>(open: readonly DataSource[], act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    for (const dataSource of open) await dataSource.destroy();
    throw error;
  }
}
