import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { NotFoundError, ValidationError } from '../../src/common/domain-error.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { DatabaseError } from '../../src/persistence/db-error.js';
import type { Engine } from '../../src/persistence/dialect.js';
import { describeEachEngine, describeEngine, type TestDatabase, type TestEngine } from '../support/engines.js';
import { PLANTED_AT, plantRows } from '../support/plant-rows.js';
import { servicesOn, type Services } from '../support/services.js';

const within = () => Deadline.after(20_000);
const EARLIER = '2025-12-31T23:59:59.999Z';

/** Metadata that is JSON, and nothing that the product would write. */
const ODD: readonly (readonly [string, string])[] = [
  ['an empty object', '{}'],
  ['a list', '[]'],
  ['a list of bundles', '[{"pending_id":"p"}]'],
  ['a number', '17'],
  ['a text', '"pending_id"'],
  ['true', 'true'],
  ['null', 'null'],
  ['everything null', '{"pending_id":null,"question_id":null,"question":null,"status":null,"context":null}'],
  ['a pending id that is a number', '{"pending_id":5,"question_id":"q","status":"pending"}'],
  ['a pending id that is a large number', '{"pending_id":1e300,"question_id":"q","status":"pending"}'],
  ['a pending id that is a fraction', '{"pending_id":0.1,"question_id":"q"}'],
  ['a pending id that is beyond 32 bits', '{"pending_id":12345678901234,"question_id":"q"}'],
  ['a pending id that is true', '{"pending_id":true,"question_id":"q"}'],
  ['a pending id that is an object', '{"pending_id":{"healthy":"healthy"},"question_id":"q"}'],
  ['a pending id that is a list', '{"pending_id":["healthy"],"question_id":"q"}'],
  ['a pending id that is empty', '{"pending_id":"","question_id":"q"}'],
  ['a pending id that is long', `{"pending_id":"${'p'.repeat(1000)}","question_id":"q"}`],
  ['a pending id with U+FFFD', '{"pending_id":"p\ufffd","question_id":"q"}'],
  ['flags of the wrong type', '{"pending_id":5,"agent_disconnected":[1],"response_delivery_pending":{"a":1}}'],
  ['a deep document', `{"pending_id":7,"question":${'['.repeat(500)}${']'.repeat(500)}}`],
];

/** The same, where one of the databases does not take it. */
const ODD_ON: Record<Engine, readonly (readonly [string, string])[]> = {
  sqlite: [
    ...ODD,
    ['a pending id with U+0000', '{"pending_id":"a\\u0000b","question_id":"q","status":"pending"}'],
    ['a pending id with a lone surrogate', '{"pending_id":"a\\ud800b","question_id":"q"}'],
    ['a question with U+0000', '{"pending_id":5,"question":{"prompt":"\\u0000"},"context":"\\udfff"}'],
    [
      'JSON5 without a bundle',
      "{pending_id: 5, status: 'pending', /* why */ list: [1,], n: +.5, h: 0x10, x: Infinity}",
    ],
    ['a key twice', '{"pending_id":"twice","pending_id":"thrice","question_id":"q","status":"pending"}'],
  ],
  postgres: ODD,
};

async function foundations(engine: TestEngine): Promise<{ database: TestDatabase; services: Services }> {
  const database = await engine.createDatabase();
  return { database, services: servicesOn(database) };
}

async function reset(database: TestDatabase): Promise<void> {
  await database.sql('DELETE FROM tasks');
  await plantRows(database, {
    tasks: [{ id: 't', workspaceId: '' }],
    sessions: [{ id: 's', taskId: 't', state: 'running', isPrimary: true }],
    turns: [{ id: 'n', sessionId: 's', startedAt: PLANTED_AT }],
  });
}

/** A row of type clarification_request in the current turn. */
function row(id: string, metadata: string, change: { readonly createdAt?: string; readonly keyed?: boolean } = {}) {
  const createdAt = change.createdAt ?? PLANTED_AT;
  return {
    ...{ id, sessionId: 's', turnId: 'n', taskId: '', type: 'clarification_request', metadata, createdAt },
    bundleCreatedAt: change.keyed === false ? null : createdAt,
  };
}

const healthy = (id: string, pendingId = id) =>
  row(id, JSON.stringify({ pending_id: pendingId, question_id: 'q', question_index: 0, status: 'pending' }));

describeEachEngine('ODD-ROWS: rows of somebody else’s making beside a bundle', (engine) => {
  let database: TestDatabase;
  let services: Services;
  beforeAll(async () => {
    ({ database, services } = await foundations(engine));
  });
  beforeEach(() => reset(database));

  const metadataOf = async (id: string) =>
    (await database.sql('SELECT metadata FROM task_session_messages WHERE id = $1', [id])).rows[0]?.['metadata'];
  const listed = async (input: object = {}) => {
    const page = await services.listing.list(UNSCOPED, input, within());
    return { ids: page.bundles.map((bundle) => bundle.pending_id), cursor: page.next_cursor };
  };

  it.each(ODD_ON[engine.name])('ODD-ROWS: %s breaks nobody’s request and is not changed', async (_, metadata) => {
    const odd = [row('odd', metadata, { createdAt: EARLIER }), row('unkeyed', metadata, { keyed: false })];
    await plantRows(database, { messages: [healthy('one'), healthy('two'), ...odd] });
    const isTwice = metadata.includes('twice');

    // Pages of one: an odd row is neither counted nor the place where a page ends.
    const first = await listed({ limit: 1 });
    const all = await listed();
    expect(all.ids.filter((id) => ['one', 'two'].includes(id))).toEqual(['one', 'two']);
    if (!isTwice) {
      expect(all.ids).toEqual(['one', 'two']);
      expect(first.ids).toEqual(['one']);
      expect(await listed({ limit: 1, cursor: first.cursor })).toEqual({ ids: ['two'], cursor: '' });
    }

    const [task] = (await services.tasks.list(UNSCOPED, {}, within())).tasks;
    expect(task?.task_pending_action).toBe('clarification');
    expect((await services.messages.listOfSession(UNSCOPED, 's', {}, within())).messages).toHaveLength(4);
    const question = { prompt: 'Which?', options: [{ label: 'this' }, { label: 'that' }] };
    await services.requests.create(UNSCOPED, { session_id: 's', questions: [question] }, within());
    expect(await services.requests.get(UNSCOPED, 'one', within())).toMatchObject({ active: true });
    const how = { surface: 'rest', deadline: within() } as const;
    const answers = [{ question_id: 'q', custom_text: 'neither' }];
    expect(await services.resolver.resolveBundle(UNSCOPED, 'one', { answers }, how)).toMatchObject({ claimed: true });
    await services.requests.cancel(UNSCOPED, 'two', within());
    for (const { id } of odd) expect(await metadataOf(id)).toBe(metadata);
    if (isTwice) return;
    await services.turns.open(UNSCOPED, 's', {}, within());
    await services.sessions.update(UNSCOPED, 's', { state: 'completed' }, within());
    await services.tasks.complete(UNSCOPED, 't', within());
    for (const { id } of odd) expect(await metadataOf(id)).toBe(metadata);
  });

  it('ODD-ROWS, M5: a number, a truth and a document are not the names that they look like', async () => {
    const names = ['5', 'true', '["x"]', '{"x": 1}', '{"x":1}', '1', '5.0'];
    const likenesses = ['5', 'true', '["x"]', '{"x": 1}', '1', '5.0'].flatMap((json, index) => [
      row(`keyed-${index}`, `{"pending_id":${json},"status":"pending"}`, { createdAt: EARLIER }),
      row(`unkeyed-${index}`, `{"pending_id":${json},"status":"answered"}`, { createdAt: EARLIER, keyed: false }),
      { ...row(`message-${index}`, `{"pending_id":${json}}`), type: 'message' },
    ]);
    await plantRows(database, {
      messages: [...names.map((name, index) => healthy(`named-${index}`, name)), ...likenesses],
    });
    const inOrder = [...names].sort();
    expect(await listed()).toEqual({ ids: inOrder, cursor: '' });
    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const page = await listed({ limit: 1, cursor });
      seen.push(...page.ids);
      cursor = page.cursor;
      if (cursor === '') break;
    }
    expect(seen).toEqual(inOrder);
    for (const name of names) {
      expect(await services.requests.get(UNSCOPED, name, within())).toMatchObject({
        active: true,
        created_at: PLANTED_AT,
      });
      const rejected = await services.resolver.resolveBundle(
        UNSCOPED,
        name,
        { rejected: true },
        { surface: 'rest', deadline: within() },
      );
      expect([name, rejected.claimed]).toEqual([name, true]);
    }
    expect((await listed()).ids).toEqual([]);
  });

  it('ODD-ROWS, PENDING-ID: every name that is listed can be read and cancelled, and is a place to page on from', async () => {
    const names = [
      'x',
      'é',
      '😀'.repeat(128),
      'a b',
      '"\\',
      '\u0001'.repeat(128),
      'p'.repeat(128),
      '..',
      '%00',
      'no-such-id',
    ];
    await plantRows(database, { messages: names.map((name, index) => healthy(`row-${index}`, name)) });
    const bytewise = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const page = await listed({ limit: 1, cursor });
      seen.push(...page.ids);
      cursor = page.cursor;
      expect(cursor.length).toBeLessThanOrEqual(2048);
      if (cursor === '') break;
    }
    expect(seen).toEqual(bytewise);
    for (const name of names) {
      expect((await services.requests.get(UNSCOPED, name, within())).pending_id).toBe(name);
      await services.requests.cancel(UNSCOPED, name, within());
    }
    expect((await listed()).ids).toEqual([]);
  });

  it.each([
    ['no question at all', {}],
    ['null', { question: null }],
    ['a text', { question: 'Which?' }],
    ['a list', { question: [{ title: 'no' }] }],
    ['parts of the wrong type', { question: { id: 7, title: 1, prompt: null, options: 'left, right' } }],
    ['options that are none', { question: { options: [1, null, {}, { option_id: '' }, { option_id: 3 }, 'left'] } }],
  ])('L15, L4a: a question that is %s is listed with empty parts, beside what can be read', async (_, question) => {
    const document = { pending_id: 'p', question_id: 'q', question_index: 1, context: ['no text'], ...question };
    const good = { id: 'r', title: 'T', prompt: 'P', options: [{ option_id: 'o', label: 'L', description: 'D' }] };
    await plantRows(database, {
      messages: [
        row('odd', JSON.stringify(document)),
        row('good', JSON.stringify({ pending_id: 'p', question_id: 'r', question_index: 2, question: good })),
      ],
    });
    const { bundles } = await services.listing.list(UNSCOPED, {}, within());
    expect(bundles).toMatchObject([
      {
        ...{ pending_id: 'p', task_id: 't', session_id: 's', created_at: PLANTED_AT, context: '' },
        questions: [
          { question_id: 'q', title: '', prompt: '', status: 'pending', options: [] },
          { question_id: 'r', title: 'T', prompt: 'P', status: 'pending', options: good.options },
        ],
      },
    ]);
    const answers = [{ question_id: 'q', custom_text: 'in words' }, { question_id: 'r' }];
    const how = { surface: 'rest', deadline: within() } as const;
    const resolved = await services.resolver.resolveBundle(UNSCOPED, 'p', { answers }, how);
    expect(resolved).toMatchObject({
      claimed: true,
      response: {
        answers: [
          { question_id: 'q', custom_text: 'in words' },
          { question_id: 'r', custom_text: '' },
        ],
      },
    });
  });

  it('D2: an index that cannot be read is 0, equal ones go by creation and then by id', async () => {
    const question = (id: string, index: unknown, createdAt = PLANTED_AT) =>
      row(id, JSON.stringify({ pending_id: 'p', question_id: id, question_index: index }), { createdAt, keyed: false });
    await plantRows(database, {
      messages: [
        question('c', 1),
        question('b', undefined),
        question('a', 'many'),
        question('B', null, EARLIER),
        question('z', -1),
        question('Z', [0]),
      ],
    });
    const { bundles } = await services.listing.list(UNSCOPED, {}, within());
    expect(bundles[0]?.questions.map((entry) => entry.question_id)).toEqual(['z', 'B', 'Z', 'a', 'b', 'c']);
  });

  it.each([[undefined], [''], [null], [7], [['q']], [{ id: 'q' }]])(
    'L16: a bundle with a question id that is %j is never listed and never resolved; cancelling is its way out',
    async (questionId) => {
      const document = { pending_id: 'p', question_id: questionId, question: { id: 'nested', prompt: 'Which?' } };
      await plantRows(database, {
        messages: [
          row('first', JSON.stringify({ pending_id: 'p', question_id: 'q1' })),
          row('odd', JSON.stringify({ ...document, status: 'answered' })),
          healthy('other'),
        ],
      });
      expect((await listed()).ids).toEqual(['other']);
      const how = { surface: 'rest', deadline: within() } as const;
      for (const outcome of [
        { rejected: true },
        { answers: [{ question_id: 'q1' }, { question_id: 'nested' }] },
        { answers: [] },
      ]) {
        await expect(services.resolver.resolveBundle(UNSCOPED, 'p', outcome, how)).rejects.toThrow(ValidationError);
      }
      expect((await services.tasks.get(UNSCOPED, 't', within())).task_pending_action).toBe('clarification');
      await services.requests.cancel(UNSCOPED, 'other', within());
      await services.requests.cancel(UNSCOPED, 'p', within());
      expect((await services.tasks.get(UNSCOPED, 't', within())).task_pending_action).toBeNull();
    },
  );

  it.each([
    ['of another type', { type: 'message' }],
    ['of another session', { sessionId: 's2', turnId: 'n2' }],
    ['of another turn', { turnId: 'old' }],
  ])('D4, L1: a bundle with a row %s is malformed: it is not listed, and hides no other', async (_, change) => {
    await plantRows(database, {
      sessions: [{ id: 's2', taskId: 't', state: 'running' }],
      turns: [
        { id: 'n2', sessionId: 's2', startedAt: PLANTED_AT },
        { id: 'old', sessionId: 's', startedAt: EARLIER },
      ],
      messages: [healthy('p'), { ...healthy('stray', 'p'), ...change }, healthy('q')],
    });
    expect((await listed()).ids).toEqual(['q']);
    await database.sql("DELETE FROM task_session_messages WHERE id = 'stray'");
    expect((await listed()).ids).toEqual(['p', 'q']);
  });

  it('M5a: a bundle that names no task is listed for nobody and found by nobody who is scoped', async () => {
    await database.sql('DELETE FROM tasks');
    await plantRows(database, {
      tasks: [{ id: '', workspaceId: '' }],
      sessions: [{ id: 's', taskId: '', state: 'running' }],
      turns: [{ id: 'n', sessionId: 's', startedAt: PLANTED_AT }],
      messages: [healthy('p')],
    });
    const alice = { kind: 'user', userId: 'alice', userName: 'alice', tokenId: 'a' } as const;
    expect((await listed()).ids).toEqual([]);
    expect((await services.listing.list(alice, {}, within())).bundles).toEqual([]);
    await expect(services.requests.get(alice, 'p', within())).rejects.toThrow(NotFoundError);
    const how = { surface: 'rest', deadline: within() } as const;
    await expect(services.resolver.resolveBundle(alice, 'p', { rejected: true }, how)).rejects.toThrow(NotFoundError);
    expect(await services.resolver.resolveBundle(UNSCOPED, 'p', { rejected: true }, how)).toMatchObject({
      claimed: true,
    });
  });

  it('M5, M5a: a bundle whose rows name two tasks is for nobody who is scoped, and is listed for the unscoped', async () => {
    await plantRows(database, {
      tasks: [{ id: 't2', workspaceId: '' }],
      messages: [
        { ...row('a', '{"pending_id":"p","question_id":"a"}'), taskId: 't' },
        { ...row('b', '{"pending_id":"p","question_id":"b"}'), taskId: 't2' },
      ],
    });
    const alice = { kind: 'user', userId: 'alice', userName: 'alice', tokenId: 'a' } as const;
    expect((await services.listing.list(alice, {}, within())).bundles).toEqual([]);
    await expect(services.requests.get(alice, 'p', within())).rejects.toThrow(NotFoundError);
    const { bundles } = await services.listing.list(UNSCOPED, {}, within());
    expect(bundles.map((bundle) => [bundle.pending_id, bundle.task_id])).toEqual([['p', '']]);
  });

  it('ODD-ROWS: what is no JSON cannot be written beside it', async () => {
    for (const metadata of ['', 'pending', '{"a":}', "{'pending_id'"]) {
      await expect(plantRows(database, { messages: [row('odd', metadata)] })).rejects.toThrow(DatabaseError);
    }
    await plantRows(database, { messages: [healthy('p')] });
    expect((await listed()).ids).toEqual(['p']);
  });
});

describeEngine('sqlite', 'ODD-ROWS: a bundle in JSON5, which SQLite takes for JSON', (engine) => {
  it('ODD-ROWS: is listed, read and answered like any other', async () => {
    const { database, services } = await foundations(engine);
    await reset(database);
    await plantRows(database, {
      messages: [
        row(
          'm',
          `{pending_id: 'p', question_id: 'q', question_index: +0, /* no status */
            question: {id: 'q', title: "T", prompt: 'W\\
hich?', options: [{option_id: 'o', label: 'L', description: '',},],}, extra: [0x10, .5, Infinity, NaN],}`,
        ),
      ],
    });
    const { bundles } = await services.listing.list(UNSCOPED, {}, within());
    expect(bundles).toMatchObject([
      {
        pending_id: 'p',
        questions: [
          {
            ...{ question_id: 'q', title: 'T', prompt: 'Which?', status: 'pending' },
            options: [{ option_id: 'o', label: 'L', description: '' }],
          },
        ],
      },
    ]);
    const answers = [{ question_id: 'q', selected_options: ['o'] }];
    const how = { surface: 'rest', deadline: within() } as const;
    expect(await services.resolver.resolveBundle(UNSCOPED, 'p', { answers }, how)).toMatchObject({
      claimed: true,
      response: { answers: [{ question_id: 'q', selected_options: ['o'], custom_text: '' }] },
    });
    expect((await services.listing.list(UNSCOPED, {}, within())).bundles).toEqual([]);
  });
});
