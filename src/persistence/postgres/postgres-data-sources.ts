import type { Client, Pool } from 'pg';
import { DataSource } from 'typeorm';
import { MIGRATIONS } from '../../../migrations/index.js';
import { SILENT_LOGGER } from '../silent-logger.js';
import { ROW_TYPES } from './type-parsers.js';

export interface PoolSettings {
  readonly connectionString: string;
  /** Most connections of one pool. */
  readonly poolSize: number;
  /** How long making or waiting for a connection may take at most, and each statement of a reading connection. */
  readonly boundMs: number;
}

// Our statements are short: compiling one, on a guess that it is long, would cost many times its run.
const SESSION = "SET timezone = 'UTC'; SET datestyle = 'ISO'; SET jit = off";

/** The pool for transactions. */
export function openPostgresWriter(settings: PoolSettings): Promise<DataSource> {
  return open(settings, SESSION);
}

/**
 * The pool for single reads; the server refuses to write on it and ends every statement after `boundMs`. It plans each
 * list for the values that it is asked with: one plan for all would read whole tables for some. Transactions look up by
 * key, for which one plan is the best.
 */
export function openPostgresReader(settings: PoolSettings): Promise<DataSource> {
  return open(
    settings,
    `${SESSION}; SET default_transaction_read_only = on; SET plan_cache_mode = force_custom_plan; ` +
      `SET statement_timeout = ${settings.boundMs}`,
  );
}

async function open(settings: PoolSettings, onConnect: string): Promise<DataSource> {
  const dataSource = new DataSource({
    type: 'postgres',
    url: settings.connectionString,
    poolSize: settings.poolSize,
    connectTimeoutMS: settings.boundMs,
    applicationName: 'clarion',
    installExtensions: false,
    entities: [],
    migrations: MIGRATIONS,
    logger: SILENT_LOGGER,
    // A connection that breaks while idle: the pool has already dropped it, and the next statement will tell.
    poolErrorHandler: () => undefined,
    extra: {
      types: ROW_TYPES,
      keepAlive: true,
      // Not by the connection string's `options`, which its owner may use and poolers drop.
      onConnect: (client: Client) => client.query(onConnect),
    },
  });
  return dataSource.initialize();
}

/** The driver's own pool, whose connections keep statements prepared; TypeORM has made it and closes it. */
export function rawPool(dataSource: DataSource): Pool {
  return (dataSource.driver as unknown as { master: Pool }).master;
}
