import type { MigrationInterface, QueryRunner } from 'typeorm';

const SQLITE = [
  `ALTER TABLE task_session_messages ADD COLUMN superseded_by TEXT
    REFERENCES task_session_turns (id) ON DELETE SET NULL`,
  `CREATE INDEX idx_messages_superseded_by ON task_session_messages (superseded_by) WHERE superseded_by IS NOT NULL`,
  `CREATE INDEX idx_messages_open_bundles ON task_session_messages
    (bundle_created_at, json_extract(metadata, '$.pending_id'), id)
    WHERE type = 'clarification_request' AND COALESCE(json_extract(metadata, '$.status'), '') IN ('', 'pending')
      AND CASE WHEN json_type(metadata, '$.pending_id') = 'text'
        THEN length(json_extract(metadata, '$.pending_id')) BETWEEN 1 AND 128
          AND instr(json_extract(metadata, '$.pending_id'), char(0)) = 0
          AND json_extract(metadata, '$.pending_id') NOT GLOB '*' || char(65533) || '*'
        ELSE FALSE END AND superseded_by IS NULL`,
  `CREATE INDEX idx_messages_unkeyed_questions ON task_session_messages
    (created_at, json_extract(metadata, '$.pending_id'), id)
    WHERE type = 'clarification_request' AND bundle_created_at IS NULL
      AND CASE WHEN json_type(metadata, '$.pending_id') = 'text'
        THEN length(json_extract(metadata, '$.pending_id')) BETWEEN 1 AND 128
          AND instr(json_extract(metadata, '$.pending_id'), char(0)) = 0
          AND json_extract(metadata, '$.pending_id') NOT GLOB '*' || char(65533) || '*'
        ELSE FALSE END AND superseded_by IS NULL`,
  `CREATE INDEX idx_messages_moved_questions ON task_session_messages
    (json_extract(metadata, '$.pending_id'))
    WHERE type = 'clarification_request' AND bundle_created_at <> created_at
      AND CASE WHEN json_type(metadata, '$.pending_id') = 'text'
        THEN length(json_extract(metadata, '$.pending_id')) BETWEEN 1 AND 128
          AND instr(json_extract(metadata, '$.pending_id'), char(0)) = 0
          AND json_extract(metadata, '$.pending_id') NOT GLOB '*' || char(65533) || '*'
        ELSE FALSE END AND superseded_by IS NULL`,
  `CREATE INDEX idx_messages_open_bundles_of_turn ON task_session_messages (turn_id, id)
    WHERE turn_id IS NOT NULL AND type = 'clarification_request' AND COALESCE(json_extract(metadata, '$.status'), '') IN ('', 'pending')
      AND CASE WHEN json_type(metadata, '$.pending_id') = 'text'
        THEN length(json_extract(metadata, '$.pending_id')) BETWEEN 1 AND 128
          AND instr(json_extract(metadata, '$.pending_id'), char(0)) = 0
          AND json_extract(metadata, '$.pending_id') NOT GLOB '*' || char(65533) || '*'
        ELSE FALSE END`,
];

const SQLITE_COLUMNS = `SELECT name FROM pragma_table_info('task_session_messages')`;

const POSTGRES = [
  `ALTER TABLE task_session_messages ADD COLUMN IF NOT EXISTS superseded_by TEXT COLLATE "C"
    REFERENCES task_session_turns (id) ON DELETE SET NULL`,
  `CREATE INDEX idx_messages_superseded_by ON task_session_messages (superseded_by) WHERE superseded_by IS NOT NULL`,
  `CREATE INDEX idx_messages_open_bundles ON task_session_messages
    (bundle_created_at, (metadata::jsonb->>'pending_id') COLLATE "C", id)
    WHERE type = 'clarification_request' AND COALESCE(metadata::jsonb->>'status', '') IN ('', 'pending')
      AND CASE WHEN jsonb_typeof(metadata::jsonb->'pending_id') = 'string'
        THEN (metadata::jsonb->>'pending_id') ~ '^[^\\uFFFD]{1,128}$' ELSE FALSE END AND superseded_by IS NULL`,
  `CREATE INDEX idx_messages_unkeyed_questions ON task_session_messages
    (created_at, (metadata::jsonb->>'pending_id') COLLATE "C", id)
    WHERE type = 'clarification_request' AND bundle_created_at IS NULL
      AND CASE WHEN jsonb_typeof(metadata::jsonb->'pending_id') = 'string'
        THEN (metadata::jsonb->>'pending_id') ~ '^[^\\uFFFD]{1,128}$' ELSE FALSE END AND superseded_by IS NULL`,
  `CREATE INDEX idx_messages_moved_questions ON task_session_messages
    ((metadata::jsonb->>'pending_id'))
    WHERE type = 'clarification_request' AND bundle_created_at <> created_at
      AND CASE WHEN jsonb_typeof(metadata::jsonb->'pending_id') = 'string'
        THEN (metadata::jsonb->>'pending_id') ~ '^[^\\uFFFD]{1,128}$' ELSE FALSE END AND superseded_by IS NULL`,
  `CREATE INDEX idx_messages_open_bundles_of_turn ON task_session_messages (turn_id, id)
    WHERE turn_id IS NOT NULL AND type = 'clarification_request' AND COALESCE(metadata::jsonb->>'status', '') IN ('', 'pending')
      AND CASE WHEN jsonb_typeof(metadata::jsonb->'pending_id') = 'string'
        THEN (metadata::jsonb->>'pending_id') ~ '^[^\\uFFFD]{1,128}$' ELSE FALSE END`,
];

/** Those above, and the one of a session, which that of a turn replaces. */
const REPLACED = [
  'superseded_by',
  'open_bundles',
  'unkeyed_questions',
  'moved_questions',
  'open_bundles_of_turn',
  'open_bundles_of_session',
];

/**
 * Which turn has superseded a question, as far as it has been noted: the listing's walks skip those rows. Null in every
 * row that is there: no row is rewritten here, the start notes them. And the open questions of a turn by an index of
 * their own, so that those of older turns are not met at all. Its turn_id is never NULL, but only a condition that names a
 * turn says so: it would otherwise do for the walk too, and there have all those rows in it.
 */
export class AddSupersededBy1764547500000 implements MigrationInterface {
  readonly name = 'AddSupersededBy1764547500000';

  async up(runner: QueryRunner): Promise<void> {
    const isPostgres = runner.connection.options.type === 'postgres';
    for (const index of REPLACED) await runner.query(`DROP INDEX IF EXISTS idx_messages_${index}`);
    // SQLite has no ADD COLUMN IF NOT EXISTS.
    const known = isPostgres
      ? []
      : ((await runner.query(SQLITE_COLUMNS)) as { name: string }[]).map(({ name }) => name);
    for (const statement of isPostgres ? POSTGRES : SQLITE) {
      if (!statement.includes('ADD COLUMN') || !known.includes('superseded_by')) await runner.query(statement);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const index of REPLACED) await runner.query(`DROP INDEX IF EXISTS idx_messages_${index}`);
    await runner.query('ALTER TABLE task_session_messages DROP COLUMN superseded_by');
  }
}
