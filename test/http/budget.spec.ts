import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { TemporarilyUnavailableError } from '../../src/common/domain-error.js';
import type { UnitOfWork } from '../../src/persistence/unit-of-work.js';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller, type Heard, type ToolAnswer } from '../support/callers.js';
import { endChildren } from '../support/child.js';
import { dumpOf } from '../support/dump.js';
import { describeEachEngine, describeEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, makeEstate, type Estate } from '../support/estate.js';
import { questionOf } from '../support/question.js';
import { holdAllWrites, holdForeignLock, holdTable, type ForeignLock } from '../support/foreign-lock.js';
import { postgresActivity } from '../support/postgres-activity.js';
import { readerWith } from '../support/reader-with.js';
import { Stage } from '../support/stage.js';
import { until } from '../support/until.js';
import { ROUTES } from './matrix.js';

const RESPONSE_UNAVAILABLE = 'clarification response is temporarily unavailable';
const UNAVAILABLE = 'the service is temporarily unavailable; send the same request again';
/** What a response waits for on PostgreSQL: its session's row. */
const SESSIONS = 'SELECT id FROM task_sessions';

const told = ({ status, headers, json }: Heard) => [status, headers.get('retry-after'), json];
const unavailable = (error: string) => [503, '1', { error, code: 'temporarily_unavailable' }];

describeEachEngine('BUDGET', (engine) => {
  let database: TestDatabase;
  let lock: ForeignLock | undefined;
  let app: RunningApp | undefined;
  beforeAll(async () => {
    database = await engine.createDatabase();
  });
  afterEach(async () => {
    await lock?.release();
    lock = undefined;
    await app?.close();
    app = undefined;
    await endChildren();
  });

  const letGo = async (): Promise<void> => {
    await lock?.release();
    lock = undefined;
  };

  async function start(budgetMs: number, options: Parameters<typeof startApp>[1] = {}) {
    app = await startApp(database, { ...options, env: { PRE_CLAIM_BUDGET_MS: String(budgetMs), ...options.env } });
    return { rest: new RestCaller(app.url), mcp: await McpCaller.open(app.url) };
  }

  /** Arranged by a server that has time, and left for the one that has not. */
  async function arranged<T>(arrange: (rest: RestCaller) => Promise<T>): Promise<T> {
    const other = await startApp(database, { env: { PRE_CLAIM_BUDGET_MS: '60000' } });
    try {
      return await arrange(new RestCaller(other.url));
    } finally {
      await other.close();
    }
  }

  const respond = (rest: RestCaller, pendingId: string, outcome: object, signal?: AbortSignal) =>
    rest.send('POST', `/clarification/${pendingId}/respond`, outcome, signal);
  const answer = (mcp: McpCaller, pendingId: string, outcome: object, signal?: AbortSignal) =>
    mcp.call('answer_question_kandev', { pending_id: pendingId, ...outcome }, signal);
  /** Its tool says so; or the pipeline, when so small a budget is spent before the call has come to the tool. */
  const isUnavailable = (calling: Promise<ToolAnswer>): Promise<boolean> =>
    calling.then(
      ({ text }) => text.startsWith('temporarily_unavailable: '),
      (error: Error) => / 503 \{.*"code":"temporarily_unavailable"\}/.test(error.message),
    );

  it('R10: while somebody else holds what the claim needs it is a 503 on both surfaces, and the same request wins once it is free', async () => {
    const [one, two, three] = await arranged<[Estate, Estate, Estate]>((rest) =>
      Promise.all([makeEstate(rest), makeEstate(rest), makeEstate(rest)]),
    );
    const { rest, mcp } = await start(700);
    const before = await dumpOf(database);
    lock = await holdForeignLock(database, SESSIONS);
    const [answered, rejected, overMcp] = await Promise.all([
      respond(rest, one.pendingId, answersTo(['q1'], 'mine')),
      respond(rest, two.pendingId, { rejected: true }),
      answer(mcp, three.pendingId, answersTo(['q1'])),
    ]);
    // Still held: nothing of what follows has waited for it.
    expect(told(answered)).toEqual(unavailable(RESPONSE_UNAVAILABLE));
    expect(told(rejected)).toEqual(unavailable(RESPONSE_UNAVAILABLE));
    expect(overMcp).toEqual({ isError: true, text: `temporarily_unavailable: ${RESPONSE_UNAVAILABLE}` });
    expect(await dumpOf(database)).toEqual(before);
    await letGo();
    // A busy machine may need a few attempts; each is the same request again.
    await until(async () => {
      const again = await respond(rest, one.pendingId, answersTo(['q1'], 'mine'));
      expect([200, 503]).toContain(again.status);
      if (again.status === 503) return false;
      expect(again.json).toMatchObject({ claimed: true, status: 'answered' });
      expect(again.json.response.answers[0].custom_text).toBe('mine');
      return true;
    });
    await until(async () => {
      const again = await answer(mcp, three.pendingId, answersTo(['q1']));
      if (again.isError) expect(again.text).toBe(`temporarily_unavailable: ${RESPONSE_UNAVAILABLE}`);
      else expect(again.value.claimed).toBe(true);
      return !again.isError;
    });
    const phases = app?.logged.filter((record) => record['event'] === 'clarification.response.phase') ?? [];
    expect(phases).toContainEqual(
      expect.objectContaining({ phase: 'claim', outcome: 'timeout', pending_id: one.pendingId, surface: 'rest' }),
    );
    expect(phases).toContainEqual(
      expect.objectContaining({ phase: 'claim', outcome: 'timeout', pending_id: three.pendingId, surface: 'mcp' }),
    );
    const metrics = await rest.get('/metrics');
    expect(metrics.text).toMatch(/clarification_response_timeout_total\{phase="claim"\} [3-9]/);
    expect(metrics.text).not.toContain(one.pendingId);
  });

  it('every other write is a 503 too while the database cannot be written, and changes nothing', async () => {
    const writes = ROUTES.filter(
      ({ route, verdicts }) => !route.startsWith('GET') && /^2/.test(verdicts.unscoped),
    ).filter(({ route }) => !route.includes('/mcp'));
    const estate = await arranged((rest) => makeEstate(rest));
    const { rest } = await start(700);
    const tool = await McpCaller.open(rest.url, `/mcp/sessions/${estate.sessionId}`);
    const before = await dumpOf(database);
    lock = await holdAllWrites(database);
    const answers = await Promise.all([
      ...writes.map(async ({ route, call }) => {
        const { path, body } = call(estate);
        return [route, told(await rest.send(route.split(' ')[0] ?? '', path, body))] as const;
      }),
      rest
        .post(`/tasks/${estate.taskId}/complete`)
        .then((answered) => ['POST /api/v1/tasks/{id}/complete', told(answered)] as const),
    ]);
    const asked = await tool.call('ask_user_question_kandev', { questions: [questionOf('another')] });
    expect(Object.fromEntries(answers)).toEqual(
      Object.fromEntries(
        answers.map(([route]) => [route, unavailable(route.endsWith('/respond') ? RESPONSE_UNAVAILABLE : UNAVAILABLE)]),
      ),
    );
    expect(asked).toEqual({ isError: true, text: `temporarily_unavailable: ${UNAVAILABLE}` });
    expect(answers.map(([route]) => route)).toEqual(
      expect.arrayContaining([
        'POST /api/v1/workspaces',
        'POST /api/v1/tasks',
        'POST /api/v1/tasks/{id}/sessions',
        'PATCH /api/v1/task-sessions/{id}',
        'POST /api/v1/task-sessions/{id}/turns',
        'POST /api/v1/task-sessions/{id}/messages',
        'POST /api/v1/clarification/request',
        'POST /api/v1/clarification/{id}/cancel',
      ]),
    );
    // Reading goes on meanwhile, and shows what was there before.
    expect((await rest.get(`/clarification/${estate.pendingId}`)).json).toMatchObject({ active: true });
    expect(await dumpOf(database)).toEqual(before);
    await letGo();
    await until(async () => (await rest.post('/workspaces', { name: 'Again' })).status === 201);
  });

  it.each(['REST', 'MCP'] as const)(
    'CALLER-GONE: nothing is claimed for a caller over %s that left before the claim',
    async (surface) => {
      const { pendingId } = await arranged((rest) => makeEstate(rest));
      const stage = new Stage();
      const { rest, mcp } = await start(60_000, { wrap: stage.wrap });
      lock = await holdForeignLock(database, SESSIONS);
      const caller = new AbortController();
      const gone =
        surface === 'REST'
          ? respond(rest, pendingId, answersTo(['q1'], 'of the one who left'), caller.signal)
          : answer(mcp, pendingId, answersTo(['q1'], 'of the one who left'), caller.signal);
      await until(() => stage.begun.includes('bundle.claim'));
      caller.abort();
      await expect(gone).rejects.toThrow();
      await until(
        () =>
          app?.logged.some((record) => record['event'] === 'request.finished' && record['aborted'] === true) === true,
      );
      const before = await dumpOf(database);
      await letGo();
      // What began after it, and waited for the same, is served after it.
      const next = await respond(rest, pendingId, answersTo(['q1'], 'of the next'));
      expect(next.json).toMatchObject({ claimed: true, response: { answers: [{ custom_text: 'of the next' }] } });
      expect((await dumpOf(database))['task_session_turns']).toHaveLength(
        (before['task_session_turns']?.length ?? 0) + 1,
      );
    },
  );

  it('CALLER-GONE: one that leaves after the claim changes nothing: it is handed over and told to the next', async () => {
    const { pendingId, sessionId } = await arranged((rest) => makeEstate(rest));
    const stage = new Stage();
    const { rest } = await start(60_000, { wrap: stage.wrap });
    const held = stage.hold('bundle.claim', 'committed');
    const caller = new AbortController();
    const gone = respond(rest, pendingId, answersTo(['q1'], 'of the one who left'), caller.signal);
    await held.reached;
    caller.abort();
    await expect(gone).rejects.toThrow();
    held.release();
    await until(async () => (await rest.get(`/clarification/${pendingId}`)).json.delivered === true);
    const same = await respond(rest, pendingId, answersTo(['q1'], 'of the one who left'));
    expect(same.json).toMatchObject({
      claimed: false,
      delivered: true,
      response: { answers: [{ custom_text: 'of the one who left' }] },
    });
    expect((await rest.get(`/task-sessions/${sessionId}/mailbox`)).json.prompt).toContain('of the one who left');
  });

  it('200 rounds with a small budget leak no connection and leave no statement behind', async () => {
    const { pendingId } = await arranged((rest) => makeEstate(rest));
    const { rest, mcp } = await start(25);
    const before = await dumpOf(database);
    lock = await holdForeignLock(database, SESSIONS);
    for (let round = 0; round < 20; round += 1) {
      const all = await Promise.all(
        Array.from({ length: 5 }, async () => [
          (await respond(rest, pendingId, answersTo(['q1']))).status === 503,
          await isUnavailable(answer(mcp, pendingId, { rejected: true })),
        ]),
      );
      expect(all.flat()).toEqual(Array(10).fill(true));
    }
    if (engine.name === 'postgres') {
      // The lock is still held: whatever waited for it has been cancelled in the server.
      await until(async () => (await postgresActivity(database.url)).busy === 0);
      const { connections } = await postgresActivity(database.url);
      // Two pools of ten, the lock of the server, and those of this test.
      expect(connections).toBeLessThanOrEqual(2 * (2 * 10) + 1);
    }
    expect(await dumpOf(database)).toEqual(before);
    await letGo();
    // Nobody of the 200 is left to get in first, or in the way.
    await database.sql(`UPDATE tasks SET description = 'free'`);
    await until(async () => {
      const again = await respond(rest, pendingId, answersTo(['q1'], 'in the end'));
      if (again.status === 503) return false;
      expect(again.json.response.answers[0].custom_text).toBe('in the end');
      return true;
    });
  });

  describe('FAIL-CLOSED: when whether a bundle is active cannot be read', () => {
    it.each([
      ['because of a fault', new Error('placed by hand'), 500, 'internal'],
      ['in time', new TemporarilyUnavailableError(UNAVAILABLE), 503, 'temporarily_unavailable'],
    ])(
      '%s, the guard refuses and lists fail, and nobody is told that nothing is pending',
      async (_, error, status, code) => {
        const estate = await arranged((rest) => makeEstate(rest));
        const isAsked = (sql: string) => sql.includes('task_session_messages odd');
        const { rest, mcp } = await start(60_000, {
          wrap: (unitOfWork) => failing(unitOfWork, isAsked, error),
          wrapReader: (reader) =>
            readerWith(reader, (sql) => {
              if (isAsked(sql)) throw error;
            }),
        });
        const before = await dumpOf(database);
        const refused = [
          await rest.post(`/tasks/${estate.taskId}/complete`),
          await rest.get('/tasks'),
          await rest.get(`/tasks/${estate.taskId}`),
          await rest.get(`/tasks/${estate.taskId}/task-sessions`),
          await rest.get('/clarification'),
          await rest.get(`/clarification/${estate.pendingId}`),
          await rest.get(`/clarification/${estate.pendingId}/wait?timeout=0`),
          await rest.post(`/clarification/${estate.pendingId}/cancel`),
          await respond(rest, estate.pendingId, answersTo(['q1'])),
          await rest.send('PATCH', `/task-sessions/${estate.sessionId}`, { state: 'completed' }),
        ];
        expect(refused.map(({ json, ...answered }) => [answered.status, json.code])).toEqual(
          refused.map(() => [status, code]),
        );
        for (const tool of ['list_pending_questions_kandev', 'list_tasks_kandev']) {
          expect((await mcp.call(tool)).text).toMatch(new RegExp(`^${code}: `));
        }
        expect(await dumpOf(database)).toEqual(before);
      },
    );
  });
});

describeEngine('postgres', 'BUDGET', (engine) => {
  it('R10: a 503 says the same when already the identity, or the bundle, cannot be looked up in time', async () => {
    const database = await engine.createDatabase();
    const app = await startApp(database, { authMode: 'enforced', env: { PRE_CLAIM_BUDGET_MS: '700' } });
    try {
      const { token } = await app.createUser();
      for (const table of ['access_tokens', 'task_session_messages']) {
        const lock = await holdTable(database, table);
        const rest = new RestCaller(app.url, token);
        const [responding, cancelling] = await Promise.all([
          rest.post('/clarification/anything/respond', answersTo(['q1'])),
          rest.post('/clarification/anything/cancel'),
        ]);
        await lock.release();
        expect([table, told(responding)]).toEqual([table, unavailable(RESPONSE_UNAVAILABLE)]);
        expect([table, told(cancelling)]).toEqual([table, unavailable(UNAVAILABLE)]);
      }
      await until(async () => (await postgresActivity(database.url)).busy === 0);
    } finally {
      await app.close();
    }
  });
});

function failing(inner: UnitOfWork, fails: (sql: string) => boolean, error: Error): UnitOfWork {
  const run: UnitOfWork['run'] = (name, deadline, work) =>
    inner.run(name, deadline, (tx) =>
      work({
        dialect: tx.dialect,
        deadline: tx.deadline,
        query: async (sql, params) => {
          if (fails(sql)) throw error;
          return tx.query<never>(sql, params);
        },
      }),
    );
  return Object.assign(Object.create(inner) as UnitOfWork, { run });
}
