import type { MigrationInterface, QueryRunner } from 'typeorm';

const SQLITE = `CREATE INDEX IF NOT EXISTS idx_messages_metadata_pending_id_lookup_ordered ON task_session_messages
  (json_extract(metadata, '$.pending_id'), created_at, id)
  WHERE json_extract(metadata, '$.pending_id') IS NOT NULL`;

const POSTGRES = `CREATE INDEX IF NOT EXISTS idx_messages_metadata_pending_id_lookup_ordered ON task_session_messages
  ((metadata::jsonb->>'pending_id'), created_at, id)
  WHERE metadata::jsonb->>'pending_id' IS NOT NULL`;

/**
 * The access path of every look-up by pending id. Additive and replay-safe: the two older indexes stay and no row
 * is rewritten. IF NOT EXISTS is silent about a different index of this name, so the start verifies it afterwards.
 */
export class AddOrderedPendingIdIndex1764547260000 implements MigrationInterface {
  readonly name = 'AddOrderedPendingIdIndex1764547260000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(runner.connection.options.type === 'postgres' ? POSTGRES : SQLITE);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX IF EXISTS idx_messages_metadata_pending_id_lookup_ordered');
  }
}
