import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Clock } from '../../src/common/clock.js';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller, type Json } from '../support/callers.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, ask, makeEstate, type Estate } from '../support/estate.js';
import { PLANTED_AT, plantRows, type PlantedRows } from '../support/plant-rows.js';
import { TestClock } from '../support/test-clock.js';

const LIST = 'list_pending_questions_kandev';

describeEachEngine('the listing over REST and MCP', (engine) => {
  let database: TestDatabase;
  let clock: TestClock;
  let app: RunningApp;
  let anybody: RestCaller;

  const start = async () => {
    app = await startApp(database, { overrides: (builder) => builder.overrideProvider(Clock).useValue(clock) });
    anybody = new RestCaller(app.url);
  };
  beforeAll(async () => {
    database = await engine.createDatabase();
    clock = new TestClock();
    await start();
  });
  afterEach(async () => {
    await database.sql('DELETE FROM tasks');
    await database.sql('DELETE FROM workspaces');
  });
  afterAll(() => app.close());

  const listed = (query = '', by: RestCaller = anybody): Promise<Json> => by.make('GET', `/clarification${query}`);
  const idsOf = async (query = '', by: RestCaller = anybody): Promise<string[]> =>
    (await listed(query, by)).bundles.map((bundle: Json) => bundle.pending_id);

  it('L3, L4, L4a, L11, D7: a bundle is listed with everything that an answer needs, the same over both', async () => {
    clock.set('2026-01-31T09:00:00.000Z');
    const estate = await makeEstate(anybody, { questions: ['q1', 'q2'] });
    clock.set('2026-01-31T09:01:01.999Z');
    const page = await listed();
    const question = (id: string) => ({
      question_id: id,
      title: `Title of ${id}`,
      prompt: `Which of ${id}?`,
      status: 'pending',
      options: [
        { option_id: 'left', label: `Left of ${id}`, description: '' },
        { option_id: 'right', label: `Right of ${id}`, description: 'The other one' },
      ],
    });
    expect(page).toEqual({
      bundles: [
        {
          pending_id: estate.pendingId,
          task_id: estate.taskId,
          session_id: estate.sessionId,
          created_at: '2026-01-31T09:00:00.000Z',
          age_seconds: 61,
          context: 'because',
          questions: [question('q1'), question('q2')],
        },
      ],
      count: 1,
      next_cursor: '',
    });
    const mcp = await McpCaller.open(app.url);
    expect((await mcp.call(LIST)).value).toEqual(page);
    expect(await listed('?limit=1')).toEqual(page);
  });

  it('D7: an age is in whole seconds, and 0 when the clock has gone back', async () => {
    clock.set('2026-01-31T09:00:00.000Z');
    await makeEstate(anybody);
    const ageAt = async (now: string): Promise<number> => {
      clock.set(now);
      return (await listed()).bundles[0].age_seconds;
    };
    expect(await ageAt('2026-01-31T09:00:00.999Z')).toBe(0);
    expect(await ageAt('2026-01-31T09:00:01.000Z')).toBe(1);
    expect(await ageAt('2026-01-31T08:00:00.000Z')).toBe(0);
  });

  it('L2: right after a restart it is what it was before', async () => {
    clock.set('2026-01-31T09:00:00.000Z');
    await makeEstate(anybody, { questions: ['q1', 'q2', 'q3'] });
    const { pendingId } = await makeEstate(anybody);
    await anybody.make('POST', `/clarification/${pendingId}/cancel`);
    clock.advance(1);
    await makeEstate(anybody);
    const before = await listed();
    expect(before.count).toBe(2);
    await app.close();
    await start();
    expect(await listed()).toEqual(before);
  });

  it.each([
    [
      'is answered',
      (own: Estate) => anybody.make('POST', `/clarification/${own.pendingId}/respond`, answersTo(['q1'])),
    ],
    [
      'is declined',
      (own: Estate) => anybody.make('POST', `/clarification/${own.pendingId}/respond`, { rejected: true }),
    ],
    ['is cancelled', (own: Estate) => anybody.make('POST', `/clarification/${own.pendingId}/cancel`)],
    ['is superseded by a turn', (own: Estate) => anybody.make('POST', `/task-sessions/${own.sessionId}/turns`, {})],
    [
      'expires with its session',
      (own: Estate) => anybody.make('PATCH', `/task-sessions/${own.sessionId}`, { state: 'failed' }),
    ],
    ['is deleted with its task', (own: Estate) => anybody.make('DELETE', `/tasks/${own.taskId}`)],
  ] as const)('L1, T: a bundle that %s leaves the list, and no other does', async (_, end) => {
    const [one, other] = [await makeEstate(anybody), await makeEstate(anybody)];
    expect((await idsOf()).sort()).toEqual([one.pendingId, other.pendingId].sort());
    await end(one);
    expect(await idsOf()).toEqual([other.pendingId]);
    const { tasks } = await anybody.make('GET', '/tasks');
    expect(tasks.filter((task: Json) => task.task_pending_action !== null).map((task: Json) => task.id)).toEqual([
      other.taskId,
    ]);
  });

  it('L1: a turn that is complete leaves its bundles on the list; two of one turn are two', async () => {
    const own = await makeEstate(anybody);
    const second = await ask(anybody, own.sessionId, ['q1'], 'another context');
    await anybody.make('POST', `/task-sessions/${own.sessionId}/turns/${own.turnId}/complete`);
    expect((await idsOf()).sort()).toEqual([own.pendingId, second].sort());
  });

  it('T, PENDING-ACTION: a task says of itself and of its primary session whether a question is open', async () => {
    const own = await makeEstate(anybody);
    const fields = async (): Promise<unknown[]> => {
      const [task] = (await anybody.make('GET', '/tasks')).tasks;
      expect(await anybody.make('GET', `/tasks/${own.taskId}`)).toEqual(task);
      return [task.task_pending_action, task.primary_session_pending_action];
    };
    expect(await fields()).toEqual(['clarification', 'clarification']);
    const second = await anybody.make('POST', `/tasks/${own.taskId}/sessions`, { is_primary: true });
    expect(await fields()).toEqual(['clarification', null]);
    await ask(anybody, second.id);
    expect(await fields()).toEqual(['clarification', 'clarification']);
    await anybody.make('POST', `/clarification/${own.pendingId}/cancel`);
    expect(await fields()).toEqual(['clarification', 'clarification']);
    await anybody.make('PATCH', `/task-sessions/${second.id}`, { state: 'completed' });
    expect(await fields()).toEqual([null, null]);
    const mcp = await McpCaller.open(app.url);
    expect((await mcp.call('list_tasks_kandev')).value.tasks).toEqual((await anybody.make('GET', '/tasks')).tasks);
  });

  describe('many bundles', () => {
    const COUNT = 203;
    const nameOf = (number: number) => `bundle-${String(number).padStart(3, '0')}`;
    const NAMES = Array.from({ length: COUNT }, (_, number) => nameOf(number));
    const startedAt = Date.parse(PLANTED_AT);
    const timeOf = (number: number) => new Date(startedAt + Math.floor(number / 3) * 1000).toISOString();

    beforeEach(() =>
      plantRows(database, {
        tasks: [{ id: 't', workspaceId: '' }],
        sessions: [{ id: 's', taskId: 't', state: 'running' }],
        turns: [{ id: 'n', sessionId: 's', startedAt: PLANTED_AT }],
        messages: NAMES.map((name, number) => ({
          id: name,
          sessionId: 's',
          turnId: 'n',
          taskId: 't',
          type: 'clarification_request',
          metadata: JSON.stringify({ pending_id: name, question_id: 'q' }),
          createdAt: timeOf(number),
          bundleCreatedAt: timeOf(number),
        })),
      }),
    );

    it.each([
      ['', 50],
      ['?limit=0', 50],
      ['?limit=-7', 50],
      ['?limit=1', 1],
      ['?limit=200', 200],
      ['?limit=201', 200],
      ['?limit=1000000', 200],
    ])('L10, L11: a page asked for by %j holds %i', async (query, size) => {
      const page = await listed(query);
      expect(page.count).toBe(size);
      expect(page.bundles.map((bundle: Json) => bundle.pending_id)).toEqual(NAMES.slice(0, size));
      expect(page.next_cursor).not.toBe('');
    });

    it('L6, L9: pages of 50 are all of them in order, and the last one has no cursor', async () => {
      const seen: string[] = [];
      const counts: number[] = [];
      for (let cursor = ''; ;) {
        const page = await listed(`?cursor=${cursor}`);
        seen.push(...page.bundles.map((bundle: Json) => bundle.pending_id));
        counts.push(page.count);
        cursor = page.next_cursor;
        if (cursor === '') break;
      }
      expect(seen).toEqual(NAMES);
      expect(counts).toEqual([50, 50, 50, 50, 3]);
      // A page that is exactly the rest is the last one.
      const rest = await listed(`?limit=200&cursor=${(await listed('?limit=3')).next_cursor}`);
      expect([rest.count, rest.next_cursor]).toEqual([200, '']);
    });

    it('L8, L14: created_since and a cursor together give what is after both', async () => {
      const { next_cursor: cursor } = await listed('?limit=4');
      const since = (number: number) => `created_since=${timeOf(number)}`;
      expect((await idsOf(`?limit=2&${since(6)}`))[0]).toBe(nameOf(6));
      expect(await idsOf(`?limit=2&cursor=${cursor}&${since(0)}`)).toEqual([nameOf(4), nameOf(5)]);
      expect(await idsOf(`?limit=2&cursor=${cursor}&${since(9)}`)).toEqual([nameOf(9), nameOf(10)]);
      const mcp = await McpCaller.open(app.url);
      const both = { limit: 2, cursor, created_since: '2026-01-01T01:00:03+01:00' };
      expect((await mcp.call(LIST, both)).value.bundles.map((bundle: Json) => bundle.pending_id)).toEqual([
        nameOf(9),
        nameOf(10),
      ]);
    });
  });
});

/** Every kind of workspace that a task can be in, and who sees a task there. */
const KINDS = {
  none: ['alice', 'bob', 'anybody'],
  dangling: ['alice', 'bob', 'anybody'],
  unowned: ['alice', 'bob', 'anybody'],
  alice: ['alice', 'anybody'],
  bob: ['bob', 'anybody'],
} as const;
type Kind = keyof typeof KINDS;
const ALL = Object.keys(KINDS) as Kind[];
const CALLERS = ['alice', 'bob', 'anybody'] as const;

describeEachEngine('who sees which bundles', (engine) => {
  let database: TestDatabase;
  let app: RunningApp;
  const callers: Record<string, RestCaller> = {};
  const workspaces: Record<Kind, string> = {
    none: '',
    dangling: 'gone',
    unowned: 'unowned',
    alice: 'w-alice',
    bob: 'w-bob',
  };

  beforeAll(async () => {
    database = await engine.createDatabase();
    // A token counts, and whoever has none is unscoped.
    app = await startApp(database);
    const [alice, bob] = [await app.createUser(), await app.createUser()];
    callers['alice'] = new RestCaller(app.url, alice.token);
    callers['bob'] = new RestCaller(app.url, bob.token);
    callers['anybody'] = new RestCaller(app.url);
    // Thirty of each kind, the invisible ones ahead of the others for somebody whoever asks.
    const bundles = ['bob', 'alice', 'none', 'dangling', 'unowned'].flatMap((kind) =>
      Array.from({ length: 30 }, (_, number) => ({
        kind: kind as Kind,
        id: `${kind}-${String(number).padStart(2, '0')}`,
      })),
    );
    await plantRows(database, {
      workspaces: [
        { id: 'w-alice', ownerId: alice.id },
        { id: 'w-bob', ownerId: bob.id },
        { id: 'unowned', ownerId: '' },
      ],
      tasks: ALL.map((kind) => ({ id: kind, workspaceId: workspaces[kind] })),
      sessions: ALL.map((kind) => ({ id: kind, taskId: kind, state: 'running' })),
      turns: ALL.map((kind) => ({ id: kind, sessionId: kind, startedAt: PLANTED_AT })),
      messages: bundles.map(({ kind, id }, index) => {
        const at = new Date(Date.parse(PLANTED_AT) + index).toISOString();
        const metadata = JSON.stringify({ pending_id: id, question_id: 'q' });
        return {
          ...{ id, sessionId: kind, turnId: kind, type: 'clarification_request', metadata },
          // M5: half of the rows name their task, for the others their session does.
          taskId: index % 2 === 0 ? kind : '',
          ...{ createdAt: at, bundleCreatedAt: index % 3 === 0 ? null : at },
        };
      }),
    } satisfies Partial<PlantedRows>);
  });
  afterAll(() => app.close());

  const idsOf = async (caller: string, query: string): Promise<string[]> => {
    const page = await callers[caller]?.make('GET', `/clarification?${query}`);
    expect(page.count).toBe(page.bundles.length);
    return page.bundles.map((bundle: Json) => bundle.pending_id);
  };

  it.each(CALLERS)('L1c, D5, M5, ACCESS: %s sees exactly what authorization allows', async (caller) => {
    const ids = await idsOf(caller, 'limit=200');
    const kinds = ['bob', 'alice', 'none', 'dangling', 'unowned'].filter((kind) =>
      (KINDS[kind as Kind] as readonly string[]).includes(caller),
    );
    expect(ids).toHaveLength(kinds.length * 30);
    expect([...new Set(ids.map((id) => id.slice(0, -3)))]).toEqual(kinds);
    for (const kind of ALL) {
      const detail = await callers[caller]?.get(`/clarification/${kind}-07`);
      expect([kind, detail?.status]).toEqual([kind, kinds.includes(kind) ? 200 : 404]);
    }
  });

  it.each(CALLERS)('L1c: nothing is left out after the limit: a small page of %s is full', async (caller) => {
    const all = await idsOf(caller, 'limit=200');
    for (const limit of [1, 7, 29, 31]) expect(await idsOf(caller, `limit=${limit}`)).toEqual(all.slice(0, limit));
  });

  it.each(CALLERS.flatMap((caller) => ALL.filter((kind) => kind !== 'none').map((kind) => [caller, kind] as const)))(
    'L7: for %s workspace_id narrows to %s, and shows nothing that is not shown without it',
    async (caller, kind) => {
      const expected = (await idsOf(caller, 'limit=200')).filter((id) => id.startsWith(kind));
      expect(expected).toHaveLength((KINDS[kind] as readonly string[]).includes(caller) ? 30 : 0);
      expect(await idsOf(caller, `limit=200&workspace_id=${workspaces[kind]}`)).toEqual(expected);
    },
  );

  it('L7, L9: an empty workspace_id is not given, and one that nothing names is an empty page', async () => {
    expect(await idsOf('alice', 'limit=200&workspace_id=')).toHaveLength(120);
    expect(await idsOf('alice', 'workspace_id=nowhere')).toEqual([]);
  });

  it('L1c, D5: a caller to whom no workspace is visible still sees what is in none or in one that is gone', async () => {
    await database.sql("UPDATE workspaces SET owner_id = 'somebody else'");
    expect(new Set((await idsOf('alice', 'limit=200')).map((id) => id.slice(0, -3)))).toEqual(
      new Set(['none', 'dangling']),
    );
    await database.sql('DELETE FROM workspaces');
    expect(await idsOf('alice', 'limit=200')).toHaveLength(150);
  });
});
