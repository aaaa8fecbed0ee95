import { ConfigError } from '../config/env.js';
import type { Env } from '../config/env.js';
import { parseDatabaseUrl } from '../persistence/database-url.js';
import type { DatabaseUrl } from '../persistence/database-url.js';

/** @throws ConfigError when the variable passes for an address and is none, such as one without a database's name */
export function databaseUrlOf(env: Env): DatabaseUrl {
  try {
    return parseDatabaseUrl(env.databaseUrl);
  } catch (error) {
    throw new ConfigError('DATABASE_URL', (error as Error).message);
  }
}
