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
  return holdOnPostgres(database, `${select} FOR UPDATE`);
}

/**
 * Has somebody else keep the whole database from being written, while it can still be read: on PostgreSQL every table
 * of the product is locked.
 */
export async function holdAllWrites(database: Pick<TestDatabase, 'engine' | 'url'>): Promise<ForeignLock> {
  if (database.engine === 'sqlite') return holdForeignLock(database, '');
  return holdOnPostgres(database, `LOCK TABLE ${TABLES.join(', ')} IN EXCLUSIVE MODE`);
}

/** PostgreSQL: has somebody else keep a table from even being read. */
export async function holdTable(database: Pick<TestDatabase, 'url'>, table: string): Promise<ForeignLock> {
  return holdOnPostgres(database, `LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
}

const TABLES = ['workspaces', 'tasks', 'task_sessions', 'task_session_turns', 'task_session_messages'];

async function holdOnPostgres({ url }: Pick<TestDatabase, 'url'>, statement: string): Promise<ForeignLock> {
  const client = new pg.Client({ connectionString: url, application_name: 'foreign lock' });
  await client.connect();
  await client.query('BEGIN');
  await client.query(statement);
  return {
    release: async () => {
      await client.query('COMMIT');
      await client.end();
    },
  };
}
