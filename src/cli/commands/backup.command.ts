import type { Command } from 'commander';
import type { CliContext } from '../cli-context.js';
import { UsageError } from '../cli-error.js';
import { databaseUrlOf } from '../database-url-of.js';
import { copySqliteDatabase } from '../persistence/copy-sqlite-database.js';

/** `backup`: a consistent copy of the SQLite file. PostgreSQL has a tool of its own, which does it better. */
export function addBackupCommand(program: Command, context: CliContext): void {
  program
    .command('backup')
    .description('copy the SQLite database to a new file while the server runs')
    .argument('<file>', 'must not exist; made with mode 0600')
    .addHelpText(
      'after',
      '\nTo restore: stop the server, put the copy in the place of the database file (and remove the -wal and -shm\nfiles beside it), start the server.',
    )
    .action(async (file: string) => {
      const url = databaseUrlOf(context.env());
      if (url.engine === 'postgres') {
        throw new UsageError(
          `${url.display} is backed up with PostgreSQL's own pg_dump, e.g. pg_dump -Fc -f FILE "$DATABASE_URL"`,
        );
      }
      await copySqliteDatabase(url.file, file);
      context.print(file);
    });
}
