import { describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import type { QueryRunner } from 'typeorm';
import { MIGRATIONS } from '../../migrations/index.js';
import { isNotNotedSuperseded, isPendingRow } from '../../src/clarification/persistence/active-bundle.predicate.js';
import { isMovedRow, isUnkeyedRow } from '../../src/clarification/persistence/list-active-bundles.query.js';
import { dialectOf, type Engine } from '../../src/persistence/dialect.js';
import { pendingIdIndexDefinition } from '../../src/persistence/pending-id-index.js';

/** What each migration says to the database, without one. */
async function statements(engine: Engine): Promise<string[]> {
  return (await Promise.all(MIGRATIONS.map((Migration) => statementsOf(Migration, engine)))).flat();
}

async function statementsOf(Migration: (typeof MIGRATIONS)[number], engine: Engine): Promise<string[]> {
  const said: string[] = [];
  const runner = {
    connection: { options: { type: engine } },
    query: async (sql: string) => {
      said.push(sql.replace(/\s+/g, ' '));
      return [];
    },
  } as unknown as QueryRunner;
  await new Migration().up(runner);
  return said;
}

/** As it is in the end: a later migration may have made it anew. */
const named = (all: string[], index: string) =>
  all.findLast((sql) => new RegExp(`CREATE INDEX (IF NOT EXISTS )?${index} `).test(sql));

// Of each that has landed: databases have been made by it, and none would see that it has changed.
const LANDED: Readonly<Record<string, string>> = {
  CreateCoreTables1764547200000: '6b654dd2783ee016',
  AddOrderedPendingIdIndex1764547260000: '462d1008295b7d35',
  AddOpenBundleIndexes1764547320000: 'f61e59d6c304ce26',
  AddTurnDispatches1764547380000: '04356e68040c821d',
  RebuildOpenBundleIndexes1764547440000: '6ce09b8113a134c3',
  AddSupersededBy1764547500000: '32492a778a73af7b',
};

it('does not change once it has landed (INDEX, TABLES)', async () => {
  for (const Migration of MIGRATIONS) {
    const said = [await statementsOf(Migration, 'sqlite'), await statementsOf(Migration, 'postgres')];
    const digest = createHash('sha256').update(JSON.stringify(said)).digest('hex').slice(0, 16);
    const { name } = new Migration();
    expect([name, digest]).toEqual([name, LANDED[name]]);
  }
});

describe.each(['sqlite', 'postgres'] as const)('the literal SQL of the migrations (%s)', (engine) => {
  const dialect = dialectOf(engine);
  const pendingId = dialect.metadataText('metadata', 'pending_id');
  const inIndex = engine === 'postgres' ? `(${pendingId})` : pendingId;

  it('extracts the pending id by the text that every look-up uses (INDEX)', async () => {
    const all = await statements(engine);
    expect(named(all, 'idx_messages_metadata_pending_id')).toContain(`(task_session_id, ${inIndex})`);
    expect(named(all, 'idx_messages_metadata_pending_id_lookup')).toContain(`(${inIndex})`);
    expect(named(all, 'idx_messages_metadata_pending_id_lookup_ordered')).toBe(
      `CREATE ${pendingIdIndexDefinition(engine).replace('INDEX', 'INDEX IF NOT EXISTS')}`,
    );
  });

  /** A predicate on the rows of `m` as an index of their table writes it. */
  const condition = (predicate: string) => predicate.replace(/\bm\./g, '').replace(/\s+/g, ' ');

  it('D4: has an open question, and the order of the listing, as the predicates write them', async () => {
    const all = await statements(engine);
    const isPending = condition(isPendingRow(dialect, 'm'));
    expect(named(all, 'idx_messages_open_bundles')).toBe(
      'CREATE INDEX idx_messages_open_bundles ON task_session_messages ' +
        `(bundle_created_at, ${dialect.bytewise(pendingId)}, id) ` +
        `WHERE ${isPending} AND ${condition(isNotNotedSuperseded('m'))}`,
    );
    expect(named(all, 'idx_messages_open_bundles_of_turn')).toBe(
      'CREATE INDEX idx_messages_open_bundles_of_turn ON task_session_messages ' +
        `(turn_id, id) WHERE turn_id IS NOT NULL AND ${isPending}`,
    );
    // A turn's does all that a session's did.
    expect(all.findLast((sql) => sql.includes('idx_messages_open_bundles_of_session'))).toMatch(/^DROP INDEX/);
    expect(named(all, 'idx_messages_unkeyed_questions')).toBe(
      'CREATE INDEX idx_messages_unkeyed_questions ON task_session_messages ' +
        `(created_at, ${dialect.bytewise(pendingId)}, id) WHERE ${condition(isUnkeyedRow(dialect, 'm'))}`,
    );
    expect(named(all, 'idx_messages_moved_questions')).toBe(
      'CREATE INDEX idx_messages_moved_questions ON task_session_messages ' +
        `(${inIndex}) WHERE ${condition(isMovedRow(dialect, 'm'))}`,
    );
    expect(named(all, 'idx_messages_delivery_intents')).toContain(
      dialect.metadataFlag('metadata', 'response_delivery_pending'),
    );
  });

  it('knows a reserved turn, and one to be announced, as the predicates write them', async () => {
    const all = await statements(engine);
    for (const [index, key] of [
      ['idx_turns_reservations', 'prompt_dispatch_pending'],
      ['idx_turns_unannounced', 'prompt_dispatch_start_event_pending'],
    ] as const) {
      expect(named(all, index)).toContain(`WHERE ${dialect.metadataFlag('metadata', key)}`);
    }
  });

  it('gives every id, key and hash a bytewise order on PostgreSQL', async () => {
    if (engine === 'sqlite') return;
    const columns = (await statements(engine)).flatMap((sql) => [...sql.matchAll(/\b(\w*id|\w*_hash) TEXT[^,]*/g)]);
    expect(columns.length).toBeGreaterThan(15);
    expect(columns.map(([column]) => column).filter((column) => !column.includes('COLLATE "C"'))).toEqual([
      "author_id TEXT NOT NULL DEFAULT ''",
    ]);
  });
});
