import { beforeAll, expect, it } from '@jest/globals';
import { countActiveBundles } from '../../src/clarification/persistence/count-active-bundles.query.js';
import { isPendingRow } from '../../src/clarification/persistence/active-bundle.predicate.js';
import { hasUnnotedRows, noteUnnotedRows } from '../../src/clarification/persistence/note-superseded.tx.js';
import { Deadline } from '../../src/common/deadline.js';
import { UNSCOPED, type Caller } from '../../src/identity/caller.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { plantMessages } from '../support/plant-messages.js';
import { questionOf } from '../support/question.js';
import { servicesOn, type Services } from '../support/services.js';
import { StatementRecorder, type RecordedStatement } from '../support/statement-recorder.js';

const within = () => Deadline.after(60_000);
const ALICE: Caller = { kind: 'user', userId: 'alice', userName: 'alice', tokenId: 'a' };

/** One line of a plan: what SQLite calls it, with its place in the tree, or a line of PostgreSQL's text. */
interface Step {
  readonly text: string;
  readonly id?: number;
  readonly parent?: number;
}

const LISTINGS: readonly (readonly [string, (services: Services) => Promise<unknown>])[] = [
  ['the first page of an unscoped caller', ({ listing }) => listing.list(UNSCOPED, {}, within())],
  ['the first page of a user', ({ listing }) => listing.list(ALICE, { limit: 200 }, within())],
  [
    'a later page of a user with every filter',
    async ({ listing }) => {
      const filter = { workspace_id: 'nowhere', created_since: '2026-01-01T00:00:00Z' };
      const { next_cursor: cursor } = await listing.list(ALICE, { limit: 1 }, within());
      return listing.list(ALICE, { ...filter, cursor }, within());
    },
  ],
];

/** Everything else that asks which bundles of a session are active. */
const QUESTIONS: readonly (readonly [string, (services: Services) => Promise<unknown>])[] = [
  ['a page of tasks', ({ tasks }) => tasks.list(UNSCOPED, {}, within())],
  ['the sessions of a task', ({ sessions }) => sessions.listOfTask(UNSCOPED, 'planted', within())],
  ['the workflow guard', ({ tasks }) => tasks.complete(UNSCOPED, 'planted', within()).catch(() => undefined)],
  [
    'asking once more in a turn',
    ({ requests }) =>
      requests.create(UNSCOPED, { session_id: 'active-3', questions: ['a', 'b'].map(questionOf) }, within()),
  ],
  ['the end of a turn', ({ turns }) => turns.complete(UNSCOPED, 'active-1', 'active-1', within())],
  ['the end of a session', ({ sessions }) => sessions.update(UNSCOPED, 'active-2', { state: 'failed' }, within())],
];

const SUPERSEDED = 20_000;
const ACTIVE = 300;
/** Read in batches by the one look that is in no service's way. */
const COUNT = 'the count of active bundles';
const UNNOTED = 'the look for rows without a note';

describeEachEngine('PLAN: the listing among 50,000 other messages', (engine) => {
  let database: TestDatabase;
  const recorder = new StatementRecorder();
  let firstPage: RecordedStatement | undefined;
  const plans = { before: new Map<string, Step[][]>(), after: new Map<string, Step[][]>() };

  beforeAll(async () => {
    database = await engine.createDatabase({ boundMs: 60_000 });
    const services = servicesOn(database, { recorder });
    await plantMessages(database, { ordinary: 25_000, bundles: 5_000, superseded: SUPERSEDED, active: ACTIVE });
    for (let left = SUPERSEDED; left > 0; left -= 5_000) {
      await database.unitOfWork.run('note', within(), (tx) => noteUnnotedRows(tx, 5_000));
    }
    const statements = new Map<string, readonly RecordedStatement[]>();
    for (const [title, ask] of [...LISTINGS, ...QUESTIONS]) {
      recorder.clear();
      await ask(services);
      statements.set(
        title,
        recorder.statements.filter(({ sql }) => /task_session_messages/.test(sql) && !/^\s*(INSERT|UPDATE)/.test(sql)),
      );
    }
    for (const [title, look] of [
      [COUNT, countActiveBundles],
      [UNNOTED, hasUnnotedRows],
    ] as const) {
      recorder.clear();
      await look(recorder.reader(database.reader).within(within()));
      statements.set(title, [...recorder.statements]);
    }
    firstPage = statements.get(LISTINGS[0]?.[0] ?? '')?.at(-1);
    const explain = async (into: Map<string, Step[][]>) => {
      for (const [title, sent] of statements) into.set(title, await Promise.all(sent.map(planOf)));
    };
    await explain(plans.before);
    await database.sql('ANALYZE');
    await explain(plans.after);
  }, 120_000);

  async function planOf({ sql, params }: RecordedStatement): Promise<Step[]> {
    const explain = engine.name === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN';
    const { rows } = await database.sql<Record<string, string | number>>(`${explain} ${sql}`, params);
    return rows.map((row) => {
      if (engine.name === 'postgres') return { text: String(row['QUERY PLAN']) };
      return { text: String(row['detail']), id: Number(row['id']), parent: Number(row['parent']) };
    });
  }

  const textOf = (plan: readonly Step[]) => plan.map(({ text }) => text).join('\n');

  function expectNoFullScan(plan: readonly Step[]): void {
    const aliases = 'm|n|u|a|b|d|r|p|o|odd|rm|task_session_messages';
    const full = new RegExp(`Seq Scan on task_session_messages|^SCAN (${aliases})\\b(?!.* USING )`, 'm');
    expect(textOf(plan)).not.toMatch(full);
  }

  const PHASES = ['before', 'after'] as const;

  it.each(PHASES.flatMap((phase) => LISTINGS.map(([title]) => [phase, title] as const)))(
    'PLAN, L6: %s ANALYZE, %s walks the open bundles, and rows of another hand, in order and looks up the few that were moved',
    (phase, title) => {
      const plan = plans[phase].get(title)?.at(-1) ?? [];
      expectNoFullScan(plan);
      const text = textOf(plan);
      if (engine.name === 'postgres') {
        // Right below the limit: nothing is sorted, so the walk ends with the page.
        expect(text).toMatch(
          /Limit .*\n\s*->\s+Index Scan using idx_messages_open_bundles on task_session_messages m /,
        );
        expect(text).toMatch(
          /Limit .*\n\s*->\s+Index Scan using idx_messages_unkeyed_questions on task_session_messages n /,
        );
        expect(text).toMatch(/(Index Scan using|Bitmap Index Scan on) idx_messages_moved_questions/);
        return;
      }
      for (const [name, row, index] of [
        ['keyed', 'm', 'idx_messages_open_bundles'],
        ['unkeyed', 'n', 'idx_messages_unkeyed_questions'],
      ]) {
        const walk = plan.find((step) => step.text === `CO-ROUTINE ${name}`);
        const steps = plan.filter((step) => step.parent === walk?.id).map((step) => step.text);
        expect(steps[0]).toMatch(new RegExp(`^(SCAN|SEARCH) ${row} USING INDEX ${index}`));
        expect(steps.filter((step) => /TEMP B-TREE/.test(step))).toEqual([]);
      }
      expect(text).toMatch(/(SCAN|SEARCH) u USING INDEX idx_messages_moved_questions/);
    },
  );

  it.each(PHASES.flatMap((phase) => QUESTIONS.map(([title]) => [phase, title] as const)))(
    'PLAN, PENDING-ACTION: %s ANALYZE, %s looks at the open questions of its sessions alone',
    (phase, title) => {
      const sent = plans[phase].get(title) ?? [];
      sent.forEach(expectNoFullScan);
      expect(sent.map(textOf).join('\n')).toContain('idx_messages_open_bundles_of_turn');
    },
  );

  it.each(PHASES.flatMap((phase) => [COUNT, UNNOTED].map((title) => [phase, title] as const)))(
    'PLAN, METRICS: %s ANALYZE, %s walks what may be open alone',
    (phase, title) => {
      const [plan = [], ...others] = plans[phase].get(title) ?? [];
      expect(others).toEqual([]);
      expectNoFullScan(plan);
      expect(textOf(plan)).toMatch(/idx_messages_open_bundles(?!_of)/);
      expect(textOf(plan)).not.toMatch(/SCAN p (?!USING INDEX idx_messages_open_bundles$)/m);
    },
  );

  it('PLAN: superseded questions ahead of the page are not met, however many', async () => {
    const isInWalk = `superseded_by IS NULL AND bundle_created_at = created_at AND ${isPendingRow(engine.dialect, 'm')}`;
    const { rows: walked } = await database.sql<{ rows: number; first: string }>(
      `SELECT COUNT(*) AS rows, MIN(m.id) AS first FROM task_session_messages m
       ${engine.dialect.byIndex('idx_messages_open_bundles')} WHERE ${isInWalk}`,
    );
    // All that are open: one was expired above, and one asked with two questions. Of the others none.
    expect(walked).toEqual([{ rows: ACTIVE + 1, first: expect.not.stringContaining('superseded') }]);
    if (engine.name === 'sqlite') return;
    const { sql = '', params = [] } = firstPage ?? {};
    const { rows } = await database.sql<Record<string, string>>(`EXPLAIN (ANALYZE, TIMING OFF) ${sql}`, params);
    const text = rows.map((row) => row['QUERY PLAN']).join('\n');
    const walk = /idx_messages_open_bundles on task_session_messages m .*actual rows=([\d.]+) [^]*?SubPlan/.exec(text);
    expect(walk).not.toBeNull();
    const removed = /Rows Removed by Filter: (\d+)/.exec(walk?.[0] ?? '')?.[1] ?? '0';
    expect(Number(walk?.[1]) + Number(removed)).toBeLessThanOrEqual(60);
  });
});
