import type { Logger } from 'typeorm';

/** TypeORM prints failed migrations to the console even when told not to log; what matters is thrown. */
export const SILENT_LOGGER: Logger = {
  logQuery: () => undefined,
  logQueryError: () => undefined,
  logQuerySlow: () => undefined,
  logSchemaBuild: () => undefined,
  logMigration: () => undefined,
  log: () => undefined,
};
