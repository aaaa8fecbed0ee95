import { newMetadata } from '../../src/clarification/domain/bundle-metadata.js';
import { hashToken } from '../../src/identity/tokens.js';
import type { Engine } from '../../src/persistence/dialect.js';
import type { TableSize } from './sizes.js';

/** The user who makes the requests that are measured; every seeded task is in this user's workspace. */
export const USER = { id: 'bench-user', workspaceId: 'bench-workspace', token: `clu_${'b'.repeat(43)}` } as const;
/** Somebody whose tasks that user does not see. */
export const STRANGER = { id: 'bench-stranger', workspaceId: 'bench-foreign' } as const;

/** What every seeded bundle asks. */
export const QUESTION = {
  id: 'q1',
  title: 'Database',
  prompt: 'Which database shall the service use in production?',
  options: [
    { option_id: 'postgres', label: 'PostgreSQL', description: 'Several writers, a server to run.' },
    { option_id: 'sqlite', label: 'SQLite', description: 'One file, one writer.' },
  ],
} as const;
export const CONTEXT = 'The service stores about a million rows and one team runs it.';

const PLACE = '{pending}';
const CONTENT = 'What an agent says while it works, about as long as a paragraph of a transcript usually is. '.repeat(
  2,
);
/** Days after the first of January 2026. */
const ACTIVE_DAY = 60;
const SUPERSEDED_DAY = 90;
/** By how much active bundles are moved to get behind the superseded ones. */
const MOVED_DAYS = 60;

/**
 * Rows in bulk, as a large and old installation has them, for a schema as the landed migrations make it. Ids are as long
 * as the product's, and grow with time. Each statement is complete in itself, without values.
 */
export function seedStatements(engine: Engine, size: TableSize): readonly string[] {
  const at = (day: number, seconds: string): string =>
    engine === 'sqlite'
      ? `strftime('%Y-%m-%dT%H:%M:%fZ', ${Date.UTC(2026, 0, 1 + day) / 1000} + ${seconds}, 'unixepoch')`
      : `timestamptz '${new Date(Date.UTC(2026, 0, 1 + day)).toISOString()}' + (${seconds}) * interval '1 second'`;
  const id = (prefix: string, n: string): string =>
    engine === 'sqlite'
      ? `printf('${prefix}-0000-7000-8000-%012x', ${n})`
      : `'${prefix}-0000-7000-8000-' || lpad(to_hex((${n})::bigint), 12, '0')`;
  const series = (count: number): string =>
    engine === 'sqlite'
      ? `(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ${count}) SELECT n FROM s) AS numbers`
      : `(SELECT generate_series(1, ${count}) AS n) AS numbers`;

  const task = (n: string): string => id('019b0001', n);
  const session = (n: string): string => id('019b0002', n);
  const turn = (n: string, ordinal: string): string => id('019b0003', `(${n}) * 4 + ${ordinal}`);
  const start = at(0, '0');
  const statements = [
    `INSERT INTO users (id, name, created_at) SELECT '${USER.id}', 'bench', ${start}
     UNION ALL SELECT '${STRANGER.id}', 'stranger', ${start}`,
    `INSERT INTO access_tokens (id, user_id, name, token_hash, created_at)
     SELECT 'bench-token', '${USER.id}', 'bench', '${hashToken(USER.token)}', ${start}`,
    `INSERT INTO workspaces (id, name, owner_id, created_at, updated_at)
     SELECT '${USER.workspaceId}', 'bench', '${USER.id}', ${start}, ${start}
     UNION ALL SELECT '${STRANGER.workspaceId}', 'foreign', '${STRANGER.id}', ${start}, ${start}`,
    `INSERT INTO tasks (id, workspace_id, title, created_at, updated_at)
     SELECT ${task('n')}, '${USER.workspaceId}', 'Task ' || n, ${at(0, 'n')}, ${at(0, 'n')} FROM ${series(size.sessions)}`,
    `INSERT INTO task_sessions (id, task_id, state, is_primary, started_at, updated_at)
     SELECT ${session('n')}, ${task('n')}, 'running', 1, ${at(0, 'n')}, ${at(0, 'n')} FROM ${series(size.sessions)}`,
    ...[1, 2, 3].map(
      (ordinal) => `INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
       SELECT ${turn('n', String(ordinal))}, ${session('n')}, ${task('n')}, ${at(ordinal, 'n')}, ${at(ordinal, 'n')},
         ${at(ordinal, 'n')} FROM ${series(size.sessions)}`,
    ),
  ];

  const ordinary = size.messages - size.active - size.superseded - size.resolved;
  const own = `1 + n % ${size.sessions}`;
  if (ordinary > 0) {
    statements.push(`INSERT INTO task_session_messages
        (id, task_session_id, task_id, turn_id, author_type, content, created_at, updated_at)
      SELECT ${id('019b1000', 'n')}, ${session(own)}, ${task(own)}, ${turn(own, '1 + n % 3')}, 'agent', '${CONTENT}',
        ${at(5, 'n')}, ${at(5, 'n')} FROM ${series(ordinary)}`);
  }
  const questions = (
    count: number,
    prefix: string,
    status: 'pending' | 'answered',
    day: number,
    home: string,
    ordinal: string,
  ): void => {
    if (count === 0) return;
    const [before, after] = metadataOf(status);
    const pendingId = id(`${prefix}f`, 'n');
    statements.push(`INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, author_id,
        content, requests_input, type, metadata, bundle_created_at, created_at, updated_at)
      SELECT ${id(`${prefix}0`, 'n')}, ${session(home)}, ${task(home)}, ${turn(home, ordinal)}, 'agent', ${session(home)},
        '${QUESTION.prompt}', 1, 'clarification_request', '${before}' || ${pendingId} || '${after}',
        ${at(day, 'n')}, ${at(day, 'n')}, ${at(day, 'n')} FROM ${series(count)}`);
  };
  questions(size.resolved, '019b200', 'answered', 20, own, '1 + n % 3');
  questions(size.active, '019b300', 'pending', ACTIVE_DAY, 'n', '3');
  questions(size.superseded, '019b400', 'pending', SUPERSEDED_DAY, own, '1 + n % 2');
  return statements;
}

/** Moves the active bundles behind the superseded ones, which are ahead of every page from then on. */
export function moveActiveBundles(engine: Engine): string {
  const moved = (column: string): string =>
    engine === 'sqlite'
      ? `strftime('%Y-%m-%dT%H:%M:%fZ', ${column}, '+${MOVED_DAYS} days')`
      : `${column} + interval '${MOVED_DAYS} days'`;
  return `UPDATE task_session_messages SET created_at = ${moved('created_at')},
    bundle_created_at = ${moved('bundle_created_at')} WHERE id LIKE '019b3000-%'`;
}

/** The text before and after the bundle's name, as it stands between the quotation marks of an SQL literal. */
function metadataOf(status: 'pending' | 'answered'): [string, string] {
  const asked = { pendingId: PLACE, question: { ...QUESTION, options: [...QUESTION.options] }, index: 0, total: 1 };
  const pending = newMetadata({ ...asked, context: CONTEXT });
  const response = { question_id: QUESTION.id, selected_options: ['sqlite'], custom_text: '' };
  const whole =
    status === 'pending'
      ? pending
      : pending.replace('"status":"pending"', `"status":"answered","response":${JSON.stringify(response)}`);
  const [before, after] = whole.split(PLACE);
  if (before === undefined || after === undefined) throw new Error('the metadata does not hold its pending id');
  return [before, after];
}
