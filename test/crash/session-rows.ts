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

/** How the session's agent is to be reached, in its row. */
export async function plantResume(url: string, sessionId: string, resume: object): Promise<void> {
  await beside(url, ({ unitOfWork }) =>
    unitOfWork.run('test.plant', Deadline.after(10_000), (tx) =>
      tx.query('UPDATE task_sessions SET resume = $2 WHERE id = $1', [sessionId, JSON.stringify(resume)]),
    ),
  );
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
