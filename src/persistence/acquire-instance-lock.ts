import type { StartupError } from '../common/startup-error.js';
import type { DatabaseUrl } from './database-url.js';
import type { InstanceLock } from './instance-lock.js';
import { lockPostgres } from './postgres/postgres-instance-lock.js';
import { lockSqlite } from './sqlite/sqlite-instance-lock.js';

/**
 * One server per database, because live waiters are in memory.
 *
 * @param onLost called at most once, when the lock was lost with its connection and another server has it now: this
 *   process must stop. Cannot happen on SQLite.
 * @throws StartupError when another server has it
 */
export function acquireInstanceLock(url: DatabaseUrl, onLost: (error: StartupError) => void): Promise<InstanceLock> {
  return url.engine === 'sqlite' ? lockSqlite(url) : lockPostgres(url, onLost);
}
