import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { BundleWait } from '../../src/clarification/delivery/bundle-wait.js';
import { WaiterRegistry } from '../../src/clarification/delivery/waiter-registry.js';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller, type Json } from '../support/callers.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, makeEstate, type Estate } from '../support/estate.js';
import { questionOf } from '../support/question.js';
import { Stage } from '../support/stage.js';
import { until } from '../support/until.js';

/** The two ways in which an agent waits for its bundle, until `signal` closes its connection. */
const SURFACES = {
  REST: async (app: RunningApp, estate: Estate, signal: AbortSignal) =>
    new RestCaller(app.url, estate.agentToken).send(
      'GET',
      `/clarification/${estate.pendingId}/wait`,
      undefined,
      signal,
    ),
  MCP: async (app: RunningApp, estate: Estate, signal: AbortSignal) => {
    const mcp = await McpCaller.open(app.url, `/mcp/sessions/${estate.sessionId}`, estate.agentToken);
    return mcp.call('wait_for_answer_kandev', { pending_id: estate.pendingId }, signal);
  },
} as const;

type Surface = keyof typeof SURFACES;

describeEachEngine('agents on real connections', (engine) => {
  const stage = new Stage();
  let database: TestDatabase;
  let app: RunningApp;
  let alice: RestCaller;

  const start = () =>
    startApp(database, {
      authMode: 'enforced',
      wrap: stage.wrap,
      env: { REATTACH_MS: '0', SHUTDOWN_GRACE_MS: '20000' },
    });

  beforeAll(async () => {
    database = await engine.createDatabase();
    app = await start();
    alice = new RestCaller(app.url, (await app.createUser('alice')).token);
  });

  afterAll(() => app.close());

  const answer = (estate: Estate) => alice.post(`/clarification/${estate.pendingId}/respond`, answersTo(['q1']));
  const agentOf = (estate: Estate) => new RestCaller(app.url, estate.agentToken);
  const turnsOf = async (estate: Estate): Promise<Json[]> =>
    (await agentOf(estate).get(`/task-sessions/${estate.sessionId}/turns`)).json.turns;
  /** Its agent waits, and the write that makes the bundle live for it is done: nothing of it can meet what a test holds. */
  const isLive = (estate: Estate): boolean =>
    app.app
      .get(WaiterRegistry, { strict: false })
      .of(estate.pendingId)
      .some((waiter) => waiter.role === 'agent' && waiter.isAttached);

  /** The answer is in the mailbox of a new turn; a wait that comes back takes it from there. */
  async function expectResumedOnce(estate: Estate): Promise<void> {
    const [, next] = await turnsOf(estate);
    const mailbox = `/task-sessions/${estate.sessionId}/mailbox`;
    expect((await agentOf(estate).get(mailbox)).json).toMatchObject({
      turn: { id: next.id },
      prompt: expect.stringContaining('Left of q1 (left)'),
    });
    const again = await agentOf(estate).get(`/clarification/${estate.pendingId}/wait`);
    expect(again.json).toMatchObject({ turn_id: next.id, answers: [{ question_id: 'q1' }] });
    expect((await agentOf(estate).get(mailbox)).status).toBe(204);
    expect(await turnsOf(estate)).toHaveLength(2);
  }

  it.each(Object.keys(SURFACES) as Surface[])(
    'HANDOVER-LOST: an agent over %s that vanishes while the confirmation commits is resumed',
    async (surface) => {
      const estate = await makeEstate(alice);
      const connection = new AbortController();
      const waiting = SURFACES[surface](app, estate, connection.signal).catch(() => 'gone');
      await until(() => isLive(estate));
      const held = stage.hold('delivery.hand-over', 'commit');
      const answering = answer(estate);
      await held.reached;
      connection.abort();
      expect(await waiting).toBe('gone');
      await until(() => !isLive(estate));
      held.release();
      expect((await answering).json).toMatchObject({ claimed: true, delivered: true });
      await expectResumedOnce(estate);
    },
  );

  it.each(Object.keys(SURFACES) as Surface[])(
    'HANDOVER-LOST: so is one over %s whose connection closes when it has the response and nothing is written yet',
    async (surface) => {
      const estate = await makeEstate(alice);
      const connection = new AbortController();
      const waits = app.app.get(BundleWait, { strict: false });
      const wait = waits.wait.bind(waits);
      let mayWrite: () => void = () => undefined;
      const writing = new Promise<void>((resolve) => (mayWrite = resolve));
      waits.wait = async (...call) => {
        const result = await wait(...call);
        await writing;
        return result;
      };
      try {
        const waiting = SURFACES[surface](app, estate, connection.signal).catch(() => 'gone');
        await until(() => isLive(estate));
        expect((await answer(estate)).json).toMatchObject({ claimed: true, delivered: true });
        expect(await turnsOf(estate)).toHaveLength(1);
        connection.abort();
        expect(await waiting).toBe('gone');
        await until(async () => (await turnsOf(estate)).length === 2);
      } finally {
        waits.wait = wait;
        mayWrite();
      }
      await expectResumedOnce(estate);
    },
  );

  it.each(Object.keys(SURFACES) as Surface[])(
    'HANDOVER-WAITER: one over %s that reads its response is not resumed as well',
    async (surface) => {
      const estate = await makeEstate(alice);
      const waiting = SURFACES[surface](app, estate, new AbortController().signal);
      await until(() => isLive(estate));
      const won = (await answer(estate)).json;
      expect(won).toMatchObject({ claimed: true, delivered: true });
      const result = await waiting;
      if ('json' in result) expect(result.json).toEqual(won.response);
      else expect(result.value).toMatchObject({ q1: { selected_options: ['left'], answered: true } });
      // Its turn is still the only one when another request has been through.
      expect(await turnsOf(estate)).toHaveLength(1);
    },
  );

  it('WAIT-ACTIVE, WAIT-INACTIVE, SESSION-STATES: what REST says of time-outs and of what is over', async () => {
    const estate = await makeEstate(alice);
    const path = `/clarification/${estate.pendingId}/wait`;
    const timedOut = await agentOf(estate).get(`${path}?timeout=0`);
    expect([timedOut.status, timedOut.json.code]).toEqual([504, 'wait_timeout']);
    const waiting = agentOf(estate).get(path);
    await until(() => isLive(estate));
    await alice.send('PATCH', `/task-sessions/${estate.sessionId}`, { state: 'completed' });
    const over = await waiting;
    expect([over.status, over.json]).toEqual([
      409,
      { error: 'clarification request is no longer active', code: 'not_active' },
    ]);
    await alice.send('DELETE', `/tasks/${estate.taskId}`);
    expect((await alice.get(path)).status).toBe(404);
  });

  it('SHUTDOWN: held calls end with pending, nobody is cut off, and what waited is detached when the next server starts', async () => {
    const asked = await makeEstate(alice);
    const other = await makeEstate(alice);
    const mcp = await McpCaller.open(app.url, `/mcp/sessions/${other.sessionId}`, other.agentToken);
    const waiting = agentOf(asked).get(`/clarification/${asked.pendingId}/wait`);
    const asking = mcp.call('ask_user_question_kandev', { questions: [questionOf('q1')], context: 'because' });
    const reading = agentOf(asked).get(`/task-sessions/${asked.sessionId}/mailbox?wait=60`);
    await until(() => isLive(asked) && isLive(other));
    await app.close();
    const [wait, ask, mailbox] = await Promise.all([waiting, asking, reading]);
    expect([wait.status, wait.json.code]).toEqual([504, 'wait_timeout']);
    expect(ask.value).toMatchObject({ status: 'pending', pending_id: other.pendingId });
    expect(mailbox.status).toBe(204);
    expect(app.logged.map((record) => record['event'])).not.toContain('server.requests_cut');

    app = await start();
    alice = new RestCaller(app.url, alice.token);
    for (const { sessionId } of [asked, other]) {
      const { messages } = (await alice.get(`/task-sessions/${sessionId}/messages`)).json;
      expect(messages[0].metadata).toMatchObject({ status: 'pending', agent_disconnected: true });
    }
    expect((await answer(asked)).json).toMatchObject({ claimed: true, delivered: true });
    await expectResumedOnce(asked);
  });
});
