import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import sqlite3 from 'sqlite3';
import { DataSource } from 'typeorm';
import { MIGRATIONS } from '../../migrations/index.js';
import type { Engine } from '../../src/persistence/dialect.js';
import { BenchError } from './bench-error.js';
import { startProduct } from './product-server.js';
import { seedStatements } from './seed.js';
import type { TableSize } from './sizes.js';

/**
 * The seeder writes rows for the schema of these; what came later finds them as in an installation that is upgraded, and
 * fills in whatever it has added.
 */
const SEEDED_SCHEMA = 'RebuildOpenBundleIndexes1764547440000';
const MIGRATIONS_FOLDER = join(import.meta.dirname, '../../migrations');

/** Fresh copies of databases that were filled once and are kept in a folder. */
export interface SeededDatabases {
  readonly engine: Engine;
  /** The address of a copy of a seeded database, which nobody else uses. */
  copy(name: string, size: TableSize): Promise<string>;
  /** Whether a copy can be had without filling one first. */
  has(size: TableSize): Promise<boolean>;
  /** One statement, in a copy that a server may have open. */
  run(url: string, sql: string): Promise<void>;
  remove(url: string): Promise<void>;
}

/** Changes with everything that decides what is in a seeded database. */
export async function seedDigest(engine: Engine, size: TableSize): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(seedStatements(engine, size)));
  for (const file of (await readdir(MIGRATIONS_FOLDER)).sort()) {
    hash.update(file).update(await readFile(join(MIGRATIONS_FOLDER, file)));
  }
  return hash.digest('hex').slice(0, 16);
}

/**
 * SQLite files. Those that other migrations or another seeder made are removed, so that the folder never holds more than
 * one of each size.
 *
 * @param kept where the seeded files stay
 * @param runFolder where the copies go
 */
export function sqliteDatabases(kept: string, runFolder: string): SeededDatabases {
  const fileOf = async (size: TableSize): Promise<string> =>
    join(kept, `sqlite-${size.messages}-${await seedDigest('sqlite', size)}.db`);

  const fill = async (file: string, size: TableSize): Promise<void> => {
    await mkdir(kept, { recursive: true });
    for (const old of await readdir(kept)) {
      if (old.startsWith(`sqlite-${size.messages}-`)) await rm(join(kept, old), { force: true });
    }
    const unfinished = `${file}.unfinished`;
    await migrateTo(new DataSource({ type: 'sqlite', database: unfinished, migrations: seededMigrations() }));
    const database = await openSqlite(unfinished);
    try {
      // If this is cut off, the file is made anew.
      await sqliteRows(database, 'PRAGMA journal_mode = OFF');
      await sqliteRows(database, 'PRAGMA synchronous = OFF');
      await sqliteRows(database, 'PRAGMA cache_size = -400000');
      await sqliteRows(database, 'PRAGMA temp_store = MEMORY');
      const indexes = (await sqliteRows(
        database,
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
      )) as { name: string; sql: string }[];
      for (const { name } of indexes) await sqliteRows(database, `DROP INDEX ${name}`);
      for (const statement of seedStatements('sqlite', size)) await sqliteRows(database, statement);
      for (const { sql } of indexes) await sqliteRows(database, sql);
    } finally {
      await closeSqlite(database);
    }
    await startOnce(`sqlite:${unfinished}`, runFolder);
    const planned = await openSqlite(unfinished);
    await sqliteRows(planned, 'ANALYZE');
    await sqliteRows(planned, 'PRAGMA wal_checkpoint(TRUNCATE)');
    await closeSqlite(planned);
    await rename(unfinished, file);
    await rm(`${unfinished}.lock`, { force: true });
  };

  return {
    engine: 'sqlite',
    async has(size) {
      return existsSync(await fileOf(size));
    },
    async copy(name, size) {
      const file = await fileOf(size);
      if (!existsSync(file)) await fill(file, size);
      const copy = join(runFolder, `${name}-${randomBytes(4).toString('hex')}.db`);
      await copyFile(file, copy);
      return `sqlite:${copy}`;
    },
    async run(url, sql) {
      const database = await openSqlite(url.slice('sqlite:'.length));
      await sqliteRows(database, 'PRAGMA busy_timeout = 10000');
      await sqliteRows(database, sql);
      await closeSqlite(database);
    },
    async remove(url) {
      for (const suffix of ['', '-wal', '-shm', '.lock'])
        await rm(`${url.slice('sqlite:'.length)}${suffix}`, { force: true });
    },
  };
}

/**
 * Databases of one PostgreSQL server; the seeded ones are templates that nobody is connected to.
 * @param runFolder for the log of a server that starts on one
 */
export function postgresDatabases(server: string, runFolder: string): SeededDatabases {
  const nameOf = async (size: TableSize): Promise<string> =>
    `seed_${size.messages}_${await seedDigest('postgres', size)}`;
  const urlOf = (database: string): string => {
    const url = new URL(server);
    url.pathname = `/${database}`;
    return url.toString();
  };
  const exists = async (name: string): Promise<boolean> =>
    (await onPostgres(server, `SELECT 1 FROM pg_database WHERE datname = '${name}'`)).length > 0;

  const fill = async (name: string, size: TableSize): Promise<void> => {
    const old = await onPostgres(
      server,
      `SELECT datname FROM pg_database WHERE starts_with(datname, 'seed_${size.messages}_')`,
    );
    for (const { datname } of old) await onPostgres(server, `DROP DATABASE "${datname}" WITH (FORCE)`);
    const unfinished = `${name}_unfinished`;
    await onPostgres(server, `CREATE DATABASE "${unfinished}" TEMPLATE template0`);
    const url = urlOf(unfinished);
    await migrateTo(
      new DataSource({ type: 'postgres', url, installExtensions: false, migrations: seededMigrations() }),
    );
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query("SET timezone = 'UTC'; SET synchronous_commit = off; SET jit = off");
      const indexes = (
        await client.query<{ name: string; sql: string }>(
          `SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS sql FROM pg_index
           WHERE indrelid::regclass::text IN ('task_session_messages', 'task_session_turns') AND NOT indisprimary`,
        )
      ).rows;
      for (const { name: index } of indexes) await client.query(`DROP INDEX ${index}`);
      for (const statement of seedStatements('postgres', size)) await client.query(statement);
      for (const { sql } of indexes) await client.query(sql);
    } finally {
      await client.end();
    }
    await startOnce(url, runFolder);
    await onPostgres(url, 'VACUUM (ANALYZE)');
    await onPostgres(server, 'CHECKPOINT');
    await onPostgres(server, `ALTER DATABASE "${unfinished}" RENAME TO "${name}"`);
  };

  return {
    engine: 'postgres',
    async has(size) {
      return exists(await nameOf(size));
    },
    async copy(name, size) {
      const template = await nameOf(size);
      if (!(await exists(template))) await fill(template, size);
      const copy = `run_${name}_${randomBytes(4).toString('hex')}`;
      await onPostgres(server, `CREATE DATABASE "${copy}" TEMPLATE "${template}" STRATEGY FILE_COPY`);
      return urlOf(copy);
    },
    run: async (url, sql) => void (await onPostgres(url, sql)),
    async remove(url) {
      await onPostgres(server, `DROP DATABASE IF EXISTS "${new URL(url).pathname.slice(1)}" WITH (FORCE)`);
    },
  };
}

/** Removes what runs that were cut off have left. */
export async function dropLeftOverDatabases(server: string): Promise<void> {
  const left = await onPostgres(
    server,
    "SELECT datname FROM pg_database WHERE starts_with(datname, 'run_') OR datname LIKE 'seed%unfinished'",
  );
  for (const { datname } of left) await onPostgres(server, `DROP DATABASE IF EXISTS "${datname}" WITH (FORCE)`);
}

/** Everything that is kept, in bytes. */
export async function keptBytes(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => [])) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0;
  }
  return bytes;
}

export async function onPostgres(url: string, sql: string): Promise<Record<string, string>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, string>>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** The rest of the migrations, and whatever else a first start does for rows that an older version has written. */
async function startOnce(databaseUrl: string, folder: string): Promise<void> {
  const server = await startProduct({ folder, databaseUrl });
  await server.stop();
}

function seededMigrations(): typeof MIGRATIONS {
  const last = MIGRATIONS.findIndex(({ name }) => name === SEEDED_SCHEMA);
  if (last < 0)
    throw new BenchError(`the seeder's schema is that of ${SEEDED_SCHEMA}, which is not among the migrations`);
  return MIGRATIONS.slice(0, last + 1);
}

async function migrateTo(dataSource: DataSource): Promise<void> {
  await dataSource.initialize();
  try {
    await dataSource.runMigrations({ transaction: 'all' });
  } finally {
    await dataSource.destroy();
  }
}

function openSqlite(file: string): Promise<sqlite3.Database> {
  return new Promise((resolve, reject) => {
    const database = new sqlite3.Database(file, (error) => (error === null ? resolve(database) : reject(error)));
  });
}

export function sqliteRows(database: sqlite3.Database, sql: string): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    database.all(sql, (error: Error | null, rows) => (error === null ? resolve(rows) : reject(error)));
  });
}

function closeSqlite(database: sqlite3.Database): Promise<void> {
  return new Promise((resolve, reject) => {
    database.close((error) => (error === null ? resolve() : reject(error)));
  });
}
