import pg from 'pg';
import { startChild } from './child.js';
import type { TestDatabase } from './engines.js';

/** Something that another process or connection holds until it is told to let go. */
export interface ForeignLock {
  release(): Promise<void>;
}

/**
 * Has somebody else hold what a write needs: on SQLite another process takes the write lock of the file, on
 * PostgreSQL another connection locks the rows that `select` names. Children are ended by `endChildren`.
 *
 * @param select e.g. `SELECT id FROM task_sessions`, without a locking clause
 */
export async function holdForeignLock(
  database: Pick<TestDatabase, 'engine' | 'url'>,
  select: string,
): Promise<ForeignLock> {
  if (database.engine === 'sqlite') {
    const child = startChild('hold-write-lock.ts', [database.url.slice('sqlite:'.length)]);
    await child.nextLine();
    return {
      release: async () => {
        child.tell('let go');
        await child.nextLine();
        await child.ended;
      },
    };
  }
  const client = new pg.Client({ connectionString: database.url, application_name: 'foreign lock' });
  await client.connect();
  await client.query('BEGIN');
  await client.query(`${select} FOR UPDATE`);
  return {
    release: async () => {
      await client.query('COMMIT');
      await client.end();
    },
  };
}
