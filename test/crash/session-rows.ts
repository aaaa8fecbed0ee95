import { Deadline } from '../../src/common/deadline.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase, type Database } from '../../src/persistence/open-database.js';

export interface SessionRows {
  readonly sessions: readonly Record<string, unknown>[];
  readonly turns: readonly Record<string, unknown>[];
  readonly messages: readonly Record<string, unknown>[];
}

/** Every row of the database that sessions are made of, read beside whatever has it open. */
export function sessionRows(url: string): Promise<SessionRows> {
  return beside(url, async ({ reader }) => {
    const all = async (table: string) =>
      (await reader.query(Deadline.after(10_000), `SELECT * FROM ${table} ORDER BY id`)).rows;
    return {
      sessions: await all('task_sessions'),
      turns: await all('task_session_turns'),
      messages: await all('task_session_messages'),
    };
  });
}

async function beside<T>(url: string, work: (database: Database) => Promise<T>): Promise<T> {
  const database = await openDatabase({
    url: parseDatabaseUrl(url),
    poolSize: 1,
    boundMs: 10_000,
    migrate: false,
  });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
