import type { MigrationInterface, QueryRunner } from 'typeorm';

/** They have another definition from here on, or are new: IF NOT EXISTS would not see the difference. */
const REBUILT = ['open_bundles', 'open_bundles_of_session', 'unkeyed_questions', 'moved_questions'];

const SQLITE = [
  `CREATE INDEX idx_messages_open_bundles ON task_session_messages
    (bundle_created_at, json_extract(metadata, '$.pending_id'), id)
    WHERE type = 'clarification_request' AND COALESCE(json_extract(metadata, '$.status'), '') IN ('', 'pending')
      AND CASE WHEN json_type(metadata, '$.pending_id') = 'text'
        THEN length(json_extract(metadata, '$.pending_id')) BETWEEN 1 AND 128
          AND instr(json_extract(metadata, '$.pending_id'), char(0)) = 0
          AND json_extract(metadata, '$.pending_id') NOT GLOB '*' || char(65533) || '*'
        ELSE FALSE END`,
  `CREATE INDEX idx_messages_open_bundles_of_session ON task_session_messages (task_session_id, id)
    WHERE type = 'clarification_request' AND COALESCE(json_extract(metadata, '$.status'), '') IN ('', 'pending')
      AND CASE WHEN json_type(metadata, '$.pending_id') = 'text'
        THEN length(json_extract(metadata, '$.pending_id')) BETWEEN 1 AND 128
          AND instr(json_extract(metadata, '$.pending_id'), char(0)) = 0
          AND json_extract(metadata, '$.pending_id') NOT GLOB '*' || char(65533) || '*'
        ELSE FALSE END`,
  `CREATE INDEX idx_messages_unkeyed_questions ON task_session_messages
    (created_at, json_extract(metadata, '$.pending_id'), id)
    WHERE type = 'clarification_request' AND bundle_created_at IS NULL
      AND CASE WHEN json_type(metadata, '$.pending_id') = 'text'
        THEN length(json_extract(metadata, '$.pending_id')) BETWEEN 1 AND 128
          AND instr(json_extract(metadata, '$.pending_id'), char(0)) = 0
          AND json_extract(metadata, '$.pending_id') NOT GLOB '*' || char(65533) || '*'
        ELSE FALSE END`,
  `CREATE INDEX idx_messages_moved_questions ON task_session_messages
    (json_extract(metadata, '$.pending_id'))
    WHERE type = 'clarification_request' AND bundle_created_at <> created_at
      AND CASE WHEN json_type(metadata, '$.pending_id') = 'text'
        THEN length(json_extract(metadata, '$.pending_id')) BETWEEN 1 AND 128
          AND instr(json_extract(metadata, '$.pending_id'), char(0)) = 0
          AND json_extract(metadata, '$.pending_id') NOT GLOB '*' || char(65533) || '*'
        ELSE FALSE END`,
];

const POSTGRES = [
  `CREATE INDEX idx_messages_open_bundles ON task_session_messages
    (bundle_created_at, (metadata::jsonb->>'pending_id') COLLATE "C", id)
    WHERE type = 'clarification_request' AND COALESCE(metadata::jsonb->>'status', '') IN ('', 'pending')
      AND CASE WHEN jsonb_typeof(metadata::jsonb->'pending_id') = 'string'
        THEN (metadata::jsonb->>'pending_id') ~ '^[^\\uFFFD]{1,128}$' ELSE FALSE END`,
  `CREATE INDEX idx_messages_open_bundles_of_session ON task_session_messages (task_session_id, id)
    WHERE type = 'clarification_request' AND COALESCE(metadata::jsonb->>'status', '') IN ('', 'pending')
      AND CASE WHEN jsonb_typeof(metadata::jsonb->'pending_id') = 'string'
        THEN (metadata::jsonb->>'pending_id') ~ '^[^\\uFFFD]{1,128}$' ELSE FALSE END`,
  `CREATE INDEX idx_messages_unkeyed_questions ON task_session_messages
    (created_at, (metadata::jsonb->>'pending_id') COLLATE "C", id)
    WHERE type = 'clarification_request' AND bundle_created_at IS NULL
      AND CASE WHEN jsonb_typeof(metadata::jsonb->'pending_id') = 'string'
        THEN (metadata::jsonb->>'pending_id') ~ '^[^\\uFFFD]{1,128}$' ELSE FALSE END`,
  `CREATE INDEX idx_messages_moved_questions ON task_session_messages
    ((metadata::jsonb->>'pending_id'))
    WHERE type = 'clarification_request' AND bundle_created_at <> created_at
      AND CASE WHEN jsonb_typeof(metadata::jsonb->'pending_id') = 'string'
        THEN (metadata::jsonb->>'pending_id') ~ '^[^\\uFFFD]{1,128}$' ELSE FALSE END`,
];

/**
 * The listing's ordered walk over pending questions; the same over those that were written without the walk's key, by a
 * walk of its own; the same of one session; and the few whose place in the walk has to be computed.
 */
export class RebuildOpenBundleIndexes1764547440000 implements MigrationInterface {
  readonly name = 'RebuildOpenBundleIndexes1764547440000';

  async up(runner: QueryRunner): Promise<void> {
    await this.down(runner);
    for (const statement of runner.connection.options.type === 'postgres' ? POSTGRES : SQLITE) {
      await runner.query(statement);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const index of REBUILT) await runner.query(`DROP INDEX IF EXISTS idx_messages_${index}`);
  }
}
