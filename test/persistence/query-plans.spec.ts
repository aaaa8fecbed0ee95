import { beforeAll, expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import type { SqlRow } from '../../src/persistence/unit-of-work.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { plantMessages } from '../support/plant-messages.js';
import { servicesOn } from '../support/services.js';
import { StatementRecorder, type RecordedStatement } from '../support/statement-recorder.js';

const ORDERED = 'idx_messages_metadata_pending_id_lookup_ordered';
const ANY_PENDING_ID = /idx_messages_metadata_pending_id_lookup(_ordered)?\b/;
const within = () => Deadline.after(60_000);

/** The plan of one statement as text. */
async function planOf(database: TestDatabase, { sql, params }: RecordedStatement): Promise<string> {
  const explain = database.engine === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN';
  const { rows } = await database.sql<SqlRow>(`${explain} ${sql}`, params);
  return rows.map((row) => String(row['detail'] ?? row['QUERY PLAN'])).join('\n');
}

/** A statement that reads the whole message table, not by an index. */
const FULL_SCAN = /Seq Scan on task_session_messages|SCAN (m|e|l|u|odd|d|task_session_messages)( |$)(?!.*USING)/m;

describeEachEngine('PLAN: look-ups by pending id among 50,000 unrelated messages', (engine) => {
  let database: TestDatabase;
  let before: readonly (readonly [string, string])[];
  let after: readonly (readonly [string, string])[];

  beforeAll(async () => {
    database = await engine.createDatabase({ boundMs: 60_000 });
    const recorder = new StatementRecorder();
    const services = servicesOn(database, { recorder });
    await plantMessages(database, { ordinary: 45_000, bundles: 5_000 });
    const task = await services.tasks.create(UNSCOPED, { title: 'one of many' }, within());
    const session = await services.sessions.create(UNSCOPED, task.id, {}, within());
    const question = { id: 'q', prompt: 'Which?', options: [{ label: 'this' }, { label: 'that' }] };
    const asked = await services.requests.create(UNSCOPED, { session_id: session.id, questions: [question] }, within());
    recorder.clear();
    await services.requests.get(UNSCOPED, asked.pending_id, within());
    await services.resolver.resolveBundle(
      UNSCOPED,
      asked.pending_id,
      { answers: [{ question_id: 'q', custom_text: 'neither' }] },
      { surface: 'rest', deadline: within() },
    );
    await services.resolver.resolveBundle(
      UNSCOPED,
      asked.pending_id,
      { rejected: true },
      { surface: 'rest', deadline: within() },
    );
    const byPendingId = recorder.statements.filter(({ params }) => params[0] === asked.pending_id);
    const plans = () =>
      Promise.all(
        byPendingId.map(async (statement) => [labelOf(statement), await planOf(database, statement)] as const),
      );
    before = await plans();
    // Of the turns too: their number decides how a reservation is told from a turn that counts.
    await database.sql('ANALYZE');
    after = await plans();
  }, 120_000);

  it('PLAN: covers the read, the claim and the reload', () => {
    expect(new Set(after.map(([label]) => label))).toEqual(
      new Set(['read', 'bundle.claim SELECT', 'bundle.claim UPDATE', 'delivery.hand-over SELECT']),
    );
  });

  it('PLAN: before ANALYZE every one goes through an index on the pending id', () => {
    for (const [label, plan] of before) {
      expect(`${label}: ${plan}`).toMatch(ANY_PENDING_ID);
      expect(`${label}: ${plan}`).not.toMatch(FULL_SCAN);
    }
  });

  it('PLAN: after ANALYZE every one names the ordered index', () => {
    for (const [label, plan] of after) {
      expect(`${label}: ${plan}`).toContain(ORDERED);
      expect(`${label}: ${plan}`).not.toMatch(FULL_SCAN);
    }
  });
});

function labelOf({ in: unit, sql }: RecordedStatement): string {
  return unit === 'read' ? 'read' : `${unit} ${sql.trim().split(/\s/)[0]}`;
}
