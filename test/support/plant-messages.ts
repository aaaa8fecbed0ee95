import type { TestDatabase } from './engines.js';

export interface Planting {
  /** Messages without a question. */
  readonly ordinary: number;
  /** Bundles of one question each, resolved, in turns of their own session. */
  readonly bundles: number;
  /** Bundles of one question each that are still pending, in turns of their own session before its last, and older. */
  readonly superseded?: number;
  /** Bundles of one question each that are open, each in a session of its own. */
  readonly active?: number;
}

const TURNS = 500;
const PORTION = 5_000;
const AT = '2026-01-01T00:00:00.000Z';
const EARLIER = '2025-12-01T00:00:00.000Z';

/** Rows in bulk, as other sessions leave them: for plans and statement counts, which depend on how many there are. */
export async function plantMessages(database: TestDatabase, planting: Planting): Promise<void> {
  await database.sql(
    `INSERT INTO tasks (id, workspace_id, title, created_at, updated_at) VALUES ('planted', '', 'planted', $1, $1)`,
    [AT],
  );
  await database.sql(
    `INSERT INTO task_sessions (id, task_id, started_at, updated_at) VALUES ('planted', 'planted', $1, $1)`,
    [AT],
  );
  const series = (count: number, first = 1): string =>
    database.engine === 'sqlite'
      ? `(WITH RECURSIVE s(n) AS (SELECT ${first} UNION ALL SELECT n + 1 FROM s WHERE n < ${first + count - 1}) SELECT n FROM s)`
      : `(SELECT generate_series(${first}, ${first + count - 1}) AS n)`;
  const at = database.engine === 'sqlite' ? '$1' : '$1::timestamptz';
  await database.sql(
    `INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
     SELECT 'turn-' || n, 'planted', 'planted', ${at}, ${at}, ${at} FROM ${series(TURNS)} AS numbers`,
    [AT],
  );
  await database.sql(
    `INSERT INTO task_session_messages
       (id, task_session_id, task_id, turn_id, author_type, content, created_at, updated_at)
     SELECT 'message-' || n, 'planted', 'planted', 'turn-' || (1 + n % ${TURNS}), 'agent', 'words', ${at}, ${at}
     FROM ${series(planting.ordinary)} AS numbers`,
    [AT],
  );
  const insert = (first: number, count: number, name: string, status: string, home: readonly string[], when: string) =>
    database.sql(
      `INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, content, requests_input,
         type, metadata, bundle_created_at, created_at, updated_at)
       SELECT '${name}-' || n, ${home[0]}, 'planted', ${home[1]}, 'agent', 'Which?', 1, 'clarification_request',
         '{"pending_id":"${name}-' || n || '","question_id":"q","question_index":0,"question_total":1,"status":"${status}"}',
         ${at}, ${at}, ${at}
       FROM ${series(count, first)} AS numbers`,
      [when],
    );
  // In portions: each statement has a bound.
  const ask = async (count: number, name: string, status: string, session: string, turn: string, when = AT) => {
    for (let first = 1; first <= count; first += PORTION) {
      await insert(first, Math.min(PORTION, count - first + 1), name, status, [session, turn], when);
    }
  };
  await ask(planting.bundles, 'planted', 'answered', "'planted'", `'turn-' || (1 + n % ${TURNS})`);
  // Of turns with equal times the one with the greatest id is current: turn-99.
  if (planting.superseded)
    await ask(planting.superseded, 'superseded', 'pending', "'planted'", "'turn-' || (1 + n % 98)", EARLIER);
  if (!planting.active) return;
  await database.sql(
    `INSERT INTO task_sessions (id, task_id, state, started_at, updated_at)
     SELECT 'active-' || n, 'planted', 'running', ${at}, ${at} FROM ${series(planting.active)} AS numbers`,
    [AT],
  );
  await database.sql(
    `INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
     SELECT 'active-' || n, 'active-' || n, 'planted', ${at}, ${at}, ${at} FROM ${series(planting.active)} AS numbers`,
    [AT],
  );
  await ask(planting.active, 'active', 'pending', "'active-' || n", "'active-' || n");
}
