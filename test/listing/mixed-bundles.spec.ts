import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import type { BundleView } from '../../src/clarification/domain/views.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { servicesOn, type Services } from '../support/services.js';

const within = () => Deadline.after(20_000);
const ASKED = '2026-01-31T09:00:00.000Z';
const EARLIER = '2026-01-31T08:59:59.999Z';
const EARLIEST = '2026-01-30T00:00:00.000Z';
const LATER = '2026-01-31T09:00:00.001Z';

/** What a foreign hand writes into one row; what is not named stays. */
interface RowChange {
  /** Undefined removes it. */
  readonly status?: string | undefined;
  readonly createdAt?: string;
  readonly bundleCreatedAt?: null;
}

type Question = 'q1' | 'q2' | 'q3';
const QUESTIONS: readonly Question[] = ['q1', 'q2', 'q3'];

interface Case {
  readonly title: string;
  /** To the rows of a bundle of three questions that was asked at 09:00. */
  readonly changes: Partial<Record<Question, RowChange>>;
  /** D1. */
  readonly createdAt: string;
  /** In D2 order, which the question index decides. */
  readonly statuses: readonly string[];
}

const OPEN = ['pending', 'pending', 'pending'];
const each = (change: RowChange) => ({ q1: change, q2: change, q3: change });

const CASES: readonly Case[] = [
  { title: 'nothing', changes: {}, createdAt: ASKED, statuses: OPEN },
  {
    title: 'the first was answered',
    changes: { q1: { status: 'answered' } },
    createdAt: ASKED,
    statuses: ['answered', 'pending', 'pending'],
  },
  {
    title: 'the first two were resolved and one of them is older',
    changes: { q1: { status: 'answered' }, q2: { status: 'rejected', createdAt: EARLIEST } },
    createdAt: EARLIEST,
    statuses: ['answered', 'rejected', 'pending'],
  },
  {
    title: 'the one that was answered is older',
    changes: { q1: { status: 'answered', createdAt: EARLIER } },
    createdAt: EARLIER,
    statuses: ['answered', 'pending', 'pending'],
  },
  { title: 'the last is older', changes: { q3: { createdAt: EARLIER } }, createdAt: EARLIER, statuses: OPEN },
  {
    title: 'each has a time of its own, as when they are written in a loop',
    changes: { q1: { createdAt: EARLIER }, q3: { createdAt: LATER } },
    createdAt: EARLIER,
    statuses: OPEN,
  },
  {
    title: 'all are older than bundle_created_at says',
    changes: each({ createdAt: EARLIEST }),
    createdAt: EARLIEST,
    statuses: OPEN,
  },
  {
    title: 'all are younger than bundle_created_at says',
    changes: each({ createdAt: LATER }),
    createdAt: LATER,
    statuses: OPEN,
  },
  {
    title: 'none has bundle_created_at',
    changes: each({ bundleCreatedAt: null }),
    createdAt: ASKED,
    statuses: OPEN,
  },
  {
    title: 'one has no bundle_created_at',
    changes: { q2: { bundleCreatedAt: null } },
    createdAt: ASKED,
    statuses: OPEN,
  },
  {
    title: 'the answered one is older and has no bundle_created_at',
    changes: { q2: { status: 'answered', createdAt: EARLIER, bundleCreatedAt: null } },
    createdAt: EARLIER,
    statuses: ['pending', 'answered', 'pending'],
  },
  {
    title: 'all but the answered one have no bundle_created_at',
    changes: { ...each({ bundleCreatedAt: null }), q1: { status: 'cancelled' } },
    createdAt: ASKED,
    statuses: ['cancelled', 'pending', 'pending'],
  },
  {
    title: 'none has bundle_created_at and the answered one is older',
    changes: {
      ...each({ bundleCreatedAt: null }),
      q2: { status: 'answered', createdAt: EARLIER, bundleCreatedAt: null },
    },
    createdAt: EARLIER,
    statuses: ['pending', 'answered', 'pending'],
  },
  { title: 'no status is left', changes: each({ status: undefined }), createdAt: ASKED, statuses: OPEN },
];

describeEachEngine('bundles whose rows a foreign hand has changed', (engine) => {
  let database: TestDatabase;
  let services: Services;

  beforeAll(async () => {
    database = await engine.createDatabase();
    services = servicesOn(database);
  });
  beforeEach(() => database.sql('DELETE FROM tasks'));

  async function ask(at: string): Promise<string> {
    services.clock.set(at);
    const task = await services.tasks.create(UNSCOPED, { title: 'a task' }, within());
    const session = await services.sessions.create(UNSCOPED, task.id, {}, within());
    const questions = QUESTIONS.map((id) => ({
      id,
      prompt: `Which of ${id}?`,
      options: [{ label: 'left' }, { label: 'right' }],
    }));
    return (await services.requests.create(UNSCOPED, { session_id: session.id, questions }, within())).pending_id;
  }

  async function apply(pendingId: string, changes: Case['changes']): Promise<void> {
    for (const { id, document } of await storedRows(pendingId)) {
      const change = changes[document['question_id'] as Question];
      if (change === undefined) continue;
      const { status, ...rest } = { ...document, ...('status' in change && { status: change.status }) };
      await database.sql(
        `UPDATE task_session_messages SET metadata = $2, created_at = COALESCE($3, created_at),
           bundle_created_at = ${change.bundleCreatedAt === null ? 'NULL' : 'bundle_created_at'} WHERE id = $1`,
        [id, JSON.stringify({ ...rest, status }), change.createdAt ?? null],
      );
    }
  }

  async function pagesOfOne(): Promise<BundleView[]> {
    const bundles: BundleView[] = [];
    for (let cursor = ''; ;) {
      const page = await services.listing.list(UNSCOPED, { limit: 1, cursor }, within());
      bundles.push(...page.bundles);
      cursor = page.next_cursor;
      if (cursor === '') return bundles;
    }
  }

  async function storedRows(pendingId: string) {
    const { rows } = await database.sql<{ id: string; metadata: string; updated_at: string }>(
      `SELECT id, metadata, updated_at FROM task_session_messages
       WHERE ${database.dialect.metadataText('metadata', 'pending_id')} = $1 ORDER BY id`,
      [pendingId],
    );
    return rows.map((row) => ({ ...row, document: JSON.parse(row.metadata) as Record<string, unknown> }));
  }

  it.each(CASES)('D1, D2, L6, L12: $title', async ({ changes, createdAt, statuses }) => {
    const neighbours = new Map<string, string>();
    for (const at of [EARLIEST, EARLIER, LATER]) neighbours.set(await ask(at), at);
    const changed = await ask(ASKED);
    await apply(changed, changes);

    const all = [...neighbours, [changed, createdAt] as const].sort((a, b) => {
      return a[1] < b[1] || (a[1] === b[1] && a[0] < b[0]) ? -1 : 1;
    });
    const seen = await pagesOfOne();
    expect(seen.map((bundle) => [bundle.pending_id, bundle.created_at])).toEqual(all);
    const listed = seen.find((bundle) => bundle.pending_id === changed);
    expect(listed?.questions.map((question) => [question.question_id, question.status])).toEqual(
      QUESTIONS.map((question, index) => [question, statuses[index]]),
    );
    const since = async (at: string) =>
      (await services.listing.list(UNSCOPED, { created_since: at }, within())).bundles.map(
        (bundle) => bundle.pending_id,
      );
    expect(await since(createdAt)).toContain(changed);
    expect(await since(new Date(Date.parse(createdAt) + 1).toISOString())).not.toContain(changed);
  });

  it.each(CASES)(
    'L12: answering finishes what is pending and leaves the rest as it is: $title',
    async ({ changes, statuses }) => {
      const changed = await ask(ASKED);
      await apply(changed, changes);
      const before = await storedRows(changed);
      services.clock.set('2026-01-31T10:00:00.000Z');
      const respond = (answers: readonly object[]) =>
        services.resolver.resolveBundle(UNSCOPED, changed, { answers }, { surface: 'rest', deadline: within() });
      const answerTo = (question: string) => ({ question_id: question, custom_text: `said of ${question}` });
      // An entry is required for every row, also for those that no longer wait for one.
      await expect(respond(['q1', 'q2'].map(answerTo))).rejects.toThrow(/^answers/);

      const resolved = await respond(QUESTIONS.map(answerTo));
      expect(resolved).toMatchObject({ claimed: true, delivered: true });
      const after = await storedRows(changed);
      const wasPending = (index: number) => statuses[index] === 'pending';
      expect(after.map((row) => row.document['status'])).toEqual(
        statuses.map((was) => (was === 'pending' ? 'answered' : was)),
      );
      expect(after.filter((_, index) => !wasPending(index))).toEqual(before.filter((_, index) => !wasPending(index)));
      expect(resolved.response.answers.map((answer) => answer.question_id)).toEqual(
        QUESTIONS.filter((_, index) => wasPending(index)),
      );
      expect(await pagesOfOne()).toEqual([]);
    },
  );

  it('D1, L12: a row that is added to a bundle takes it to the time of that row', async () => {
    const [older, younger] = [await ask(EARLIEST), await ask(LATER)];
    const changed = await ask(ASKED);
    const [first] = await storedRows(changed);
    const add = (id: string, at: string, row: object) =>
      database.sql(
        `INSERT INTO task_session_messages (id, task_session_id, turn_id, author_type, type, metadata, created_at, updated_at)
         SELECT $1, task_session_id, turn_id, author_type, type, $2, $3, $3 FROM task_session_messages WHERE id = $4`,
        [id, JSON.stringify({ ...first?.document, ...row }), at, first?.id ?? ''],
      );
    await add('added', EARLIER, { question_id: 'q4', question_index: 3, status: 'answered' });
    const seen = await pagesOfOne();
    expect(seen.map((bundle) => bundle.pending_id)).toEqual([older, changed, younger]);
    expect(seen[1]?.created_at).toBe(EARLIER);
    expect(seen[1]?.questions.map((question) => question.question_id)).toEqual(['q1', 'q2', 'q3', 'q4']);
  });
});
