import type { MigrationInterface, QueryRunner } from 'typeorm';

const SQLITE = [
  `CREATE INDEX IF NOT EXISTS idx_messages_open_bundles ON task_session_messages
    (bundle_created_at, json_extract(metadata, '$.pending_id'), id)
    WHERE type = 'clarification_request' AND COALESCE(json_extract(metadata, '$.status'), '') IN ('', 'pending')
      AND CASE WHEN json_type(metadata, '$.pending_id') = 'text'
        THEN length(json_extract(metadata, '$.pending_id')) BETWEEN 1 AND 128
          AND instr(json_extract(metadata, '$.pending_id'), char(0)) = 0
          AND json_extract(metadata, '$.pending_id') NOT GLOB '*' || char(65533) || '*'
        ELSE FALSE END`,
  `CREATE INDEX IF NOT EXISTS idx_messages_open_bundles_of_session ON task_session_messages (task_session_id, id)
    WHERE type = 'clarification_request' AND COALESCE(json_extract(metadata, '$.status'), '') IN ('', 'pending')
      AND CASE WHEN json_type(metadata, '$.pending_id') = 'text'
        THEN length(json_extract(metadata, '$.pending_id')) BETWEEN 1 AND 128
          AND instr(json_extract(metadata, '$.pending_id'), char(0)) = 0
          AND json_extract(metadata, '$.pending_id') NOT GLOB '*' || char(65533) || '*'
        ELSE FALSE END`,
  `CREATE INDEX IF NOT EXISTS idx_messages_unkeyed_questions ON task_session_messages
    (json_extract(metadata, '$.pending_id'))
    WHERE type = 'clarification_request' AND (bundle_created_at IS NULL OR bundle_created_at <> created_at)`,
  `CREATE INDEX IF NOT EXISTS idx_messages_delivery_intents ON task_session_messages (task_session_id, id)
    WHERE type = 'clarification_request'
      AND COALESCE(CAST(json_extract(metadata, '$.response_delivery_pending') AS TEXT), '') IN ('1', 'true')`,
];

const POSTGRES = [
  `CREATE INDEX IF NOT EXISTS idx_messages_open_bundles ON task_session_messages
    (bundle_created_at, (metadata::jsonb->>'pending_id') COLLATE "C", id)
    WHERE type = 'clarification_request' AND COALESCE(metadata::jsonb->>'status', '') IN ('', 'pending')
      AND CASE WHEN jsonb_typeof(metadata::jsonb->'pending_id') = 'string'
        THEN char_length(metadata::jsonb->>'pending_id') BETWEEN 1 AND 128
          AND strpos(metadata::jsonb->>'pending_id', chr(65533)) = 0
        ELSE FALSE END`,
  `CREATE INDEX IF NOT EXISTS idx_messages_open_bundles_of_session ON task_session_messages (task_session_id, id)
    WHERE type = 'clarification_request' AND COALESCE(metadata::jsonb->>'status', '') IN ('', 'pending')
      AND CASE WHEN jsonb_typeof(metadata::jsonb->'pending_id') = 'string'
        THEN char_length(metadata::jsonb->>'pending_id') BETWEEN 1 AND 128
          AND strpos(metadata::jsonb->>'pending_id', chr(65533)) = 0
        ELSE FALSE END`,
  `CREATE INDEX IF NOT EXISTS idx_messages_unkeyed_questions ON task_session_messages
    ((metadata::jsonb->>'pending_id'))
    WHERE type = 'clarification_request' AND (bundle_created_at IS NULL OR bundle_created_at <> created_at)`,
  `CREATE INDEX IF NOT EXISTS idx_messages_delivery_intents ON task_session_messages (task_session_id, id)
    WHERE type = 'clarification_request'
      AND COALESCE(metadata::jsonb->>'response_delivery_pending', '') IN ('1', 'true')`,
];

/**
 * The listing's ordered walk over pending questions; the same of one session; those whose place in that walk has to be
 * computed; and the few whose hand-over is not settled.
 */
export class AddOpenBundleIndexes1764547320000 implements MigrationInterface {
  readonly name = 'AddOpenBundleIndexes1764547320000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of runner.connection.options.type === 'postgres' ? POSTGRES : SQLITE) {
      await runner.query(statement);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX IF EXISTS idx_messages_open_bundles');
    await runner.query('DROP INDEX IF EXISTS idx_messages_open_bundles_of_session');
    await runner.query('DROP INDEX IF EXISTS idx_messages_unkeyed_questions');
    await runner.query('DROP INDEX IF EXISTS idx_messages_delivery_intents');
  }
}
