import type { MigrationInterface, QueryRunner } from 'typeorm';

const SQLITE = [
  `ALTER TABLE task_session_turns ADD COLUMN dispatch TEXT NOT NULL DEFAULT ''
    CHECK (dispatch IN ('', 'owed', 'unconfirmed', 'settled', 'given_up'))`,
  `ALTER TABLE task_session_turns ADD COLUMN dispatch_body TEXT`,
  `ALTER TABLE task_session_turns ADD COLUMN dispatch_attempts INTEGER NOT NULL DEFAULT 0`,
  `ALTER TABLE task_session_turns ADD COLUMN dispatch_since TEXT`,
  `ALTER TABLE task_session_turns ADD COLUMN dispatch_next_at TEXT`,
  `CREATE INDEX IF NOT EXISTS idx_turns_dispatches ON task_session_turns (dispatch_next_at, id)
    WHERE dispatch IN ('owed', 'unconfirmed')`,
  `CREATE INDEX IF NOT EXISTS idx_turns_unconfirmed ON task_session_turns (task_session_id, id)
    WHERE dispatch = 'unconfirmed'`,
  `CREATE INDEX IF NOT EXISTS idx_turns_reservations ON task_session_turns (task_session_id, id)
    WHERE COALESCE(CAST(json_extract(metadata, '$.prompt_dispatch_pending') AS TEXT), '') IN ('1', 'true')`,
  `CREATE INDEX IF NOT EXISTS idx_turns_unannounced ON task_session_turns (task_session_id, id)
    WHERE COALESCE(CAST(json_extract(metadata, '$.prompt_dispatch_start_event_pending') AS TEXT), '') IN ('1', 'true')`,
];

const SQLITE_COLUMNS = `SELECT name FROM pragma_table_info('task_session_turns')`;

const POSTGRES = [
  `ALTER TABLE task_session_turns ADD COLUMN IF NOT EXISTS dispatch TEXT NOT NULL DEFAULT ''
    CHECK (dispatch IN ('', 'owed', 'unconfirmed', 'settled', 'given_up'))`,
  `ALTER TABLE task_session_turns ADD COLUMN IF NOT EXISTS dispatch_body TEXT`,
  `ALTER TABLE task_session_turns ADD COLUMN IF NOT EXISTS dispatch_attempts INTEGER NOT NULL DEFAULT 0`,
  `ALTER TABLE task_session_turns ADD COLUMN IF NOT EXISTS dispatch_since TIMESTAMPTZ(3)`,
  `ALTER TABLE task_session_turns ADD COLUMN IF NOT EXISTS dispatch_next_at TIMESTAMPTZ(3)`,
  `CREATE INDEX IF NOT EXISTS idx_turns_dispatches ON task_session_turns (dispatch_next_at, id)
    WHERE dispatch IN ('owed', 'unconfirmed')`,
  `CREATE INDEX IF NOT EXISTS idx_turns_unconfirmed ON task_session_turns (task_session_id, id)
    WHERE dispatch = 'unconfirmed'`,
  `CREATE INDEX IF NOT EXISTS idx_turns_reservations ON task_session_turns (task_session_id, id)
    WHERE COALESCE(metadata::jsonb->>'prompt_dispatch_pending', '') IN ('1', 'true')`,
  `CREATE INDEX IF NOT EXISTS idx_turns_unannounced ON task_session_turns (task_session_id, id)
    WHERE COALESCE(metadata::jsonb->>'prompt_dispatch_start_event_pending', '') IN ('1', 'true')`,
];

/**
 * What is still to be sent to an agent's webhook, kept on the turn that carries the prompt; and the few turns that are
 * reserved for a dispatch, or published by recovery and not announced yet.
 */
export class AddTurnDispatches1764547380000 implements MigrationInterface {
  readonly name = 'AddTurnDispatches1764547380000';

  async up(runner: QueryRunner): Promise<void> {
    const isPostgres = runner.connection.options.type === 'postgres';
    // SQLite has no ADD COLUMN IF NOT EXISTS.
    const known = isPostgres
      ? []
      : ((await runner.query(SQLITE_COLUMNS)) as { name: string }[]).map(({ name }) => name);
    for (const statement of isPostgres ? POSTGRES : SQLITE) {
      const column = /ADD COLUMN (\w+)/.exec(statement)?.[1];
      if (column === undefined || !known.includes(column)) await runner.query(statement);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const index of ['dispatches', 'unconfirmed', 'reservations', 'unannounced']) {
      await runner.query(`DROP INDEX IF EXISTS idx_turns_${index}`);
    }
    for (const column of ['dispatch', 'dispatch_body', 'dispatch_attempts', 'dispatch_since', 'dispatch_next_at']) {
      await runner.query(`ALTER TABLE task_session_turns DROP COLUMN ${column}`);
    }
  }
}
