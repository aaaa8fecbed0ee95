import type { TestDatabase } from './engines.js';

export interface Planting {
  /** Messages without a question. */
  readonly ordinary: number;
  /** Bundles of one question each, resolved, in turns of their own session. */
  readonly bundles: number;
}

const TURNS = 500;
const AT = '2026-01-01T00:00:00.000Z';

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
  const series = (count: number): string =>
    database.engine === 'sqlite'
      ? `(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ${count}) SELECT n FROM s)`
      : `(SELECT generate_series(1, ${count}) AS n)`;
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
  await database.sql(
    `INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, content, requests_input,
       type, metadata, bundle_created_at, created_at, updated_at)
     SELECT 'question-' || n, 'planted', 'planted', 'turn-' || (1 + n % ${TURNS}), 'agent', 'Which?', 1, 'clarification_request',
       '{"pending_id":"planted-' || n || '","question_id":"q","question_index":0,"question_total":1,"status":"answered"}',
       ${at}, ${at}, ${at}
     FROM ${series(planting.bundles)} AS numbers`,
    [AT],
  );
}
