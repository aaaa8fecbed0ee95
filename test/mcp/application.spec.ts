import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { describeEachEngine } from '../support/engines.js';
import type { TestDatabase } from '../support/engines.js';
import { startApp } from '../support/app.js';
import type { RunningApp, StartAppOptions } from '../support/app.js';
import { until } from '../support/until.js';
import { WaiterRegistry } from '../../src/clarification/delivery/waiter-registry.js';
import { INITIALIZE, JSON_HEADERS } from './support/endpoint-server.js';
import { callTool, closeClients, connectMcp } from './support/mcp-clients.js';

const ASK = 'ask_user_question_kandev';
const WAIT = 'wait_for_answer_kandev';
const LIST = 'list_pending_questions_kandev';
const ANSWER = 'answer_question_kandev';
const QUESTIONS = [
  { prompt: 'Which database?', options: [{ label: 'SQLite' }, { label: 'PostgreSQL' }] },
  { id: 'port', prompt: 'Which port?', options: [{ label: '3000' }, { label: '8080' }] },
];
const ANSWERS = [
  { question_id: 'q1', selected_options: ['q1_opt2'], custom_text: ' version 18 ' },
  { question_id: 'port', selected_options: [] },
];
const NOT_FOUND = 'not_found: clarification request not found';
const INACTIVE = 'not_active: clarification request is no longer active';

interface Session {
  readonly id: string;
  readonly taskId: string;
  readonly path: string;
  readonly agentToken: string;
}

describeEachEngine('MCP on the whole product', (engine) => {
  let database: TestDatabase;
  let running: RunningApp;

  beforeEach(async () => {
    database = await engine.createDatabase();
  });
  afterEach(async () => {
    await closeClients();
    await running.close();
    await database.close();
  });

  async function start(options: StartAppOptions = {}): Promise<void> {
    running = await startApp(database, options);
  }

  async function newSession(token?: string, workspaceId = ''): Promise<Session> {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const task = await running.http
      .post('/api/v1/tasks')
      .set(headers)
      .send({ title: 'A task', workspace_id: workspaceId });
    expect(task.status).toBe(201);
    const session = await running.http.post(`/api/v1/tasks/${task.body.id}/sessions`).set(headers).send({});
    expect(session.status).toBe(201);
    const { id, agent_token } = session.body;
    return { id, taskId: task.body.id, path: `/mcp/sessions/${id}`, agentToken: agent_token };
  }

  async function newWorkspace(token: string): Promise<string> {
    const made = await running.http
      .post('/api/v1/workspaces')
      .set({ authorization: `Bearer ${token}` })
      .send({ name: 'Mine' });
    return made.body.id;
  }

  async function askOverRest(session: Session): Promise<string> {
    const body = { session_id: session.id, questions: QUESTIONS };
    return (await running.http.post('/api/v1/clarification/request').send(body)).body.pending_id;
  }

  const waiters = () => running.app.get(WaiterRegistry).size;

  it('N4, R12: an agent asks and blocks, somebody outside lists and answers, the agent gets it in the same call; who comes later is told', async () => {
    await start();
    const session = await newSession();
    const agent = await connectMcp(running.url, session.path);
    const outside = await connectMcp(running.url, '/mcp');
    await agent.listTools();
    await outside.listTools();

    const asked = callTool(agent, ASK, { questions: QUESTIONS, context_paragraphs: ['One.', 'Two.'] });
    await until(() => waiters() === 1);
    const listed = await callTool(outside, LIST);
    expect(listed.value).toMatchObject({ count: 1, next_cursor: '' });
    const [bundle] = listed.value['bundles'] as { pending_id: string }[];
    expect(bundle).toMatchObject({
      task_id: session.taskId,
      session_id: session.id,
      context: 'One.\n\nTwo.',
      questions: [
        {
          question_id: 'q1',
          prompt: 'Which database?',
          status: 'pending',
          options: [{ option_id: 'q1_opt1', label: 'SQLite' }, {}],
        },
        { question_id: 'port' },
      ],
    });
    const won = await callTool(outside, ANSWER, { pending_id: bundle?.pending_id, answers: ANSWERS });
    expect(won.value).toEqual({
      claimed: true,
      delivered: true,
      status: 'answered',
      response: {
        pending_id: bundle?.pending_id,
        answers: [
          { question_id: 'q1', selected_options: ['q1_opt2'], custom_text: 'version 18' },
          { question_id: 'port', selected_options: [], custom_text: '' },
        ],
        rejected: false,
        reject_reason: '',
        responded_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    });
    expect((await asked).value).toEqual({
      q1: { selected_options: ['q1_opt2'], selected_labels: ['PostgreSQL'], custom_text: 'version 18', answered: true },
      port: { selected_options: [], selected_labels: [], custom_text: '', answered: false },
    });
    expect((await callTool(outside, LIST)).value).toEqual({ bundles: [], count: 0, next_cursor: '' });

    const lost = await callTool(outside, ANSWER, { pending_id: bundle?.pending_id, rejected: true });
    expect(lost.value).toEqual({ ...won.value, claimed: false });
  });

  it('N4a, N5: inactive and not found are told apart; unknown ids of every shape read the same', async () => {
    await start();
    const session = await newSession();
    const agent = await connectMcp(running.url, session.path);
    const outside = await connectMcp(running.url, '/mcp');
    const { value } = await callTool(agent, ASK, { questions: QUESTIONS, timeout_seconds: 0 });
    const pendingId = String(value['pending_id']);
    expect((await running.http.post(`/api/v1/clarification/${pendingId}/cancel`)).status).toBe(200);
    expect(await callTool(outside, ANSWER, { pending_id: pendingId, answers: ANSWERS })).toMatchObject({
      isError: true,
      text: INACTIVE,
    });
    expect(await callTool(agent, WAIT, { pending_id: pendingId })).toMatchObject({ isError: true, text: INACTIVE });
    for (const id of ['missing', '', '\u0000', '%ZZ', 'ü', '\ud800', 'x'.repeat(10_000)]) {
      expect(await callTool(outside, ANSWER, { pending_id: id, answers: 'junk' })).toMatchObject({
        isError: true,
        text: NOT_FOUND,
      });
      expect(await callTool(agent, WAIT, { pending_id: id, timeout_seconds: -1 })).toMatchObject({
        isError: true,
        text: NOT_FOUND,
      });
    }
  });

  it('N8c, UNKNOWN-FIELDS: a bad outcome names its field and decides nothing', async () => {
    await start();
    const outside = await connectMcp(running.url, '/mcp');
    const pendingId = await askOverRest(await newSession());
    const wrong: [object, string][] = [
      [{}, 'answers must have exactly one entry per question: expected 2, got 0'],
      [{ answer: [] }, 'answer is not a known field'],
      [{ reason: 'no', rejected: true }, 'reason is not a known field'],
      [{ answers: 'yes' }, 'answers must be a list'],
      [{ rejected: 'yes' }, 'rejected must be true or false'],
      [{ answers: [{ question_id: 'q1', custom_text: 5 }] }, 'answers[0].custom_text must be text'],
      [
        { answers: [{ question_id: 'q1', custom_text: 'a\u0000' }] },
        'answers[0].custom_text must not contain U+0000 or a lone surrogate',
      ],
      [{ answers: ANSWERS, rejected: true }, 'answers must be empty or absent when rejected is true'],
    ];
    for (const [outcome, sentence] of wrong) {
      expect(await callTool(outside, ANSWER, { pending_id: pendingId, ...outcome })).toMatchObject({
        isError: true,
        text: `validation_failed: ${sentence}`,
      });
    }
    expect(await callTool(outside, ANSWER, { answers: ANSWERS })).toMatchObject({
      text: 'validation_failed: pending_id is required',
    });
    expect(await callTool(outside, ANSWER, { pending_id: 5 })).toMatchObject({
      text: 'validation_failed: pending_id must be text',
    });
    expect((await callTool(outside, LIST)).value).toMatchObject({ count: 1 });
    // A8: a task id is known, and ignored.
    const won = await callTool(outside, ANSWER, { pending_id: pendingId, answers: ANSWERS, task_id: { any: 'thing' } });
    expect(won.value).toMatchObject({ claimed: true, status: 'answered' });
  });

  it('the other external tools read what REST reads', async () => {
    await start();
    const session = await newSession();
    const workspace = (await running.http.post('/api/v1/workspaces').send({ name: 'W' })).body;
    const outside = await connectMcp(running.url, '/mcp');
    await outside.listTools();
    await askOverRest(session);

    const tasks = await callTool(outside, 'list_tasks_kandev');
    expect(tasks.value).toEqual((await running.http.get('/api/v1/tasks')).body);
    expect(tasks.value).toMatchObject({
      tasks: [
        { id: session.taskId, task_pending_action: 'clarification', primary_session_pending_action: 'clarification' },
      ],
    });
    expect((await callTool(outside, 'list_workspaces_kandev')).value).toEqual({ workspaces: [workspace] });
    const conversation = await callTool(outside, 'get_task_conversation_kandev', { task_id: session.taskId });
    expect(conversation.value).toEqual((await running.http.get(`/api/v1/task-sessions/${session.id}/messages`)).body);
    expect(conversation.value['messages']).toHaveLength(2);
    expect(await callTool(outside, 'get_task_conversation_kandev', { task_id: 'missing', more: 1 })).toMatchObject({
      text: 'not_found: task not found',
    });
    expect(await callTool(outside, 'get_task_conversation_kandev', { task_id: session.taskId, more: 1 })).toMatchObject(
      { text: 'validation_failed: more is not a known field' },
    );
    const other = await newSession();
    expect(
      await callTool(outside, 'get_task_conversation_kandev', { task_id: session.taskId, session_id: other.id }),
    ).toMatchObject({ text: 'not_found: session not found' });
    expect(await callTool(outside, LIST, { created_since: 'yesterday' })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^validation_failed: created_since /),
    });
    expect(await callTool(outside, LIST, { limit: '5' })).toMatchObject({
      text: 'validation_failed: limit must be a whole number',
    });
    expect(
      (await callTool(outside, LIST, { limit: 1, cursor: '', workspace_id: '', created_since: '' })).value,
    ).toMatchObject({ count: 1 });
  });

  it('MCP-GONE: a client that gives up after its own time-out and waits again gets its answer once', async () => {
    await start();
    const session = await newSession();
    const agent = await connectMcp(running.url, session.path);
    const outside = await connectMcp(running.url, '/mcp');
    const asked = expect(callTool(agent, ASK, { questions: QUESTIONS }, { timeout: 2_000 })).rejects.toThrow(
      'timed out',
    );
    await until(() => waiters() === 1);
    await asked;
    let bundles: { pending_id: string }[] = [];
    await until(async () => {
      bundles = (await callTool(outside, LIST)).value['bundles'] as typeof bundles;
      return bundles.length === 1 && waiters() === 0;
    });
    const [bundle] = bundles;
    const waiting = callTool(agent, WAIT, { pending_id: bundle?.pending_id });
    await until(() => waiters() === 1);
    expect((await callTool(outside, ANSWER, { pending_id: bundle?.pending_id, answers: ANSWERS })).value).toMatchObject(
      { claimed: true, delivered: true },
    );
    const answered = (await waiting).value;
    expect(answered).toMatchObject({ q1: { selected_labels: ['PostgreSQL'] } });
    // The mailbox must not carry it as well.
    expect((await running.http.get(`/api/v1/task-sessions/${session.id}/mailbox`)).status).toBe(204);
    expect((await callTool(agent, WAIT, { pending_id: bundle?.pending_id })).value).toEqual(answered);
  });

  it('MCP-GONE: a dropped connection frees its waiter and detaches the question; asking the same again rejoins it', async () => {
    await start();
    const session = await newSession();
    const raw = (body: object, id?: string, signal?: AbortSignal) =>
      fetch(running.url + session.path, {
        method: 'POST',
        headers: { ...JSON_HEADERS, ...(id === undefined ? {} : { 'mcp-session-id': id }) },
        body: JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      });
    const opened = await raw(INITIALIZE);
    await opened.text();
    const mcpSession = opened.headers.get('mcp-session-id') ?? '';
    const params = { name: ASK, arguments: { questions: QUESTIONS } };
    const connection = new AbortController();
    await raw({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, mcpSession, connection.signal);
    await until(() => waiters() === 1);
    connection.abort();
    await until(() => waiters() === 0);
    const flags = () =>
      database
        .sql<{ metadata: string }>('SELECT metadata FROM task_session_messages')
        .then(({ rows }) =>
          rows.map(({ metadata }) => (JSON.parse(metadata) as Record<string, unknown>)['agent_disconnected']),
        );
    await until(async () => (await flags()).every((flag) => flag === true));
    const agent = await connectMcp(running.url, session.path);
    const again = callTool(agent, ASK, { questions: QUESTIONS });
    await until(async () => (await flags()).every((flag) => flag === undefined));
    expect(await flags()).toHaveLength(2);
    const pendingId = await askOverRest(session);
    await running.http.post(`/api/v1/clarification/${pendingId}/respond`).send({ rejected: true });
    expect((await again).value).toMatchObject({ rejected: true });
  });

  it('WAIT-TOOL: the answer to a question asked before a restart is there after it', async () => {
    await start();
    const session = await newSession();
    const agent = await connectMcp(running.url, session.path);
    const held = callTool(agent, ASK, { questions: QUESTIONS });
    await until(() => waiters() === 1);
    await running.close();
    const pending = (await held).value;
    expect(pending).toMatchObject({ status: 'pending', next: expect.stringContaining(WAIT) });
    await closeClients();

    await start();
    const outside = await connectMcp(running.url, '/mcp');
    await callTool(outside, ANSWER, { pending_id: pending['pending_id'], rejected: true, reject_reason: 'no' });
    const again = await connectMcp(running.url, session.path);
    expect((await callTool(again, WAIT, { pending_id: pending['pending_id'] })).value).toEqual({
      rejected: true,
      reject_reason: '',
    });
  });

  it('MCP-SURFACES, AGENT: with auth enforced each surface takes its own kind of token only', async () => {
    await start({ authMode: 'enforced' });
    const [ana, ben] = [await running.createUser(), await running.createUser()];
    const session = await newSession(ana.token, await newWorkspace(ana.token));
    const other = await newSession(ana.token, await newWorkspace(ana.token));
    const initialize = async (path: string, token?: string) => {
      const headers = { ...JSON_HEADERS, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
      const response = await fetch(running.url + path, { method: 'POST', headers, body: JSON.stringify(INITIALIZE) });
      return [response.status, response.status === 200 ? '' : await response.json()];
    };
    const unauthorized = expect.objectContaining({ code: 'unauthorized' });
    expect(await initialize('/mcp')).toEqual([401, unauthorized]);
    expect(await initialize('/mcp', 'clu_wrong')).toEqual([401, unauthorized]);
    expect(await initialize(session.path)).toEqual([401, unauthorized]);
    expect(await initialize('/mcp', session.agentToken)).toEqual([403, expect.objectContaining({ code: 'forbidden' })]);
    const forbidden = { error: "this surface takes a session's agent token, not a user's", code: 'forbidden' };
    expect(await initialize(session.path, ana.token)).toEqual([403, forbidden]);
    expect(await initialize('/mcp/sessions/missing', ben.token)).toEqual([403, forbidden]);
    const notFound = { error: 'session not found', code: 'not_found' };
    for (const path of [
      other.path,
      '/mcp/sessions/missing',
      `/mcp/sessions/${'x'.repeat(1_000)}`,
      '/mcp/sessions/%00',
    ]) {
      expect(await initialize(path, session.agentToken)).toEqual([404, notFound]);
    }
    expect((await initialize('/mcp', ana.token))[0]).toBe(200);
    expect((await initialize(session.path, session.agentToken))[0]).toBe(200);
  });

  it('A3, N5: a foreign bundle reads like a missing one on every tool', async () => {
    await start({ authMode: 'enforced' });
    const [ana, ben] = [await running.createUser(), await running.createUser()];
    const mine = await newSession(ana.token, await newWorkspace(ana.token));
    const theirs = await newSession(ben.token, await newWorkspace(ben.token));
    const agent = await connectMcp(running.url, mine.path, mine.agentToken);
    const foreignAgent = await connectMcp(running.url, theirs.path, theirs.agentToken);
    const foreigner = await connectMcp(running.url, '/mcp', ben.token);
    const { value } = await callTool(agent, ASK, { questions: QUESTIONS, timeout_seconds: 0 });
    const pendingId = value['pending_id'];
    for (const id of [pendingId, 'missing']) {
      for (const outcome of [{ answers: ANSWERS }, { rejected: true }, { answers: 5 }, { junk: true }]) {
        expect(await callTool(foreigner, ANSWER, { pending_id: id, ...outcome })).toEqual({
          isError: true,
          text: NOT_FOUND,
          value: {},
        });
      }
      expect(await callTool(foreignAgent, WAIT, { pending_id: id, timeout_seconds: 0 })).toEqual({
        isError: true,
        text: NOT_FOUND,
        value: {},
      });
      expect(await callTool(foreignAgent, WAIT, { pending_id: id, junk: 1 })).toEqual({
        isError: true,
        text: NOT_FOUND,
        value: {},
      });
    }
    for (const taskId of [mine.taskId, 'missing']) {
      expect(await callTool(foreigner, 'get_task_conversation_kandev', { task_id: taskId })).toEqual({
        isError: true,
        text: 'not_found: task not found',
        value: {},
      });
    }
    expect((await callTool(foreigner, LIST)).value).toMatchObject({ count: 0 });
    expect((await callTool(foreigner, 'list_tasks_kandev')).value).toMatchObject({ tasks: [{ id: theirs.taskId }] });
    expect((await callTool(await connectMcp(running.url, '/mcp', ana.token), LIST)).value).toMatchObject({ count: 1 });
  });

  it('MCP-REVOKED: a new agent token ends what the old one holds open', async () => {
    await start({ authMode: 'enforced' });
    const ana = await running.createUser();
    const session = await newSession(ana.token);
    const agent = await connectMcp(running.url, session.path, session.agentToken);
    const held = callTool(agent, ASK, { questions: QUESTIONS });
    await until(() => waiters() === 1);
    const renewed = await running.http
      .post(`/api/v1/task-sessions/${session.id}/agent-token`)
      .set({ authorization: `Bearer ${ana.token}` });
    expect(renewed.status).toBe(200);
    expect(await held).toMatchObject({ isError: true, text: 'unauthorized: the access token is no longer valid' });
    await until(() => waiters() === 0);
    const back = await connectMcp(running.url, session.path, renewed.body.agent_token);
    expect((await callTool(back, ASK, { questions: QUESTIONS, timeout_seconds: 0 })).value).toMatchObject({
      status: 'pending',
    });
  });

  it('R3: of many callers over both surfaces one wins and all get its answer', async () => {
    await start();
    const session = await newSession();
    const agent = await connectMcp(running.url, session.path);
    const clients = await Promise.all(Array.from({ length: 4 }, () => connectMcp(running.url, '/mcp')));
    const asked = callTool(agent, ASK, { questions: QUESTIONS });
    await until(() => waiters() === 1);
    const pendingId = await askOverRest(session);
    const outcome = (n: number) => ({ answers: [{ question_id: 'q1', custom_text: `${n}` }, { question_id: 'port' }] });
    const overMcp = clients.map((client, n) =>
      callTool(client, ANSWER, { pending_id: pendingId, ...outcome(n) }).then(({ value }) => value),
    );
    const overRest = [4, 5, 6, 7].map((n) =>
      running.http
        .post(`/api/v1/clarification/${pendingId}/respond`)
        .send(outcome(n))
        .then((response) => response.body as Record<string, unknown>),
    );
    const results = await Promise.all([...overMcp, ...overRest]);
    expect(results.filter((result) => result['claimed'] === true)).toHaveLength(1);
    expect(new Set(results.map((result) => JSON.stringify(result['response']))).size).toBe(1);
    const [winner] = (results[0]?.['response'] as { answers: { custom_text: string }[] }).answers;
    expect((await asked).value).toMatchObject({ q1: { custom_text: winner?.custom_text } });
  });

  it('UNKNOWN-FIELDS, ORDER: neither surface takes a query, which is told after access', async () => {
    await start();
    const session = await newSession();
    const post = async (path: string) => {
      const { status, body } = await running.http.post(path).set(JSON_HEADERS).send(INITIALIZE);
      return [status, body];
    };
    const refused = [400, { error: 'sesion is not a known field', code: 'validation_failed' }];
    expect(await post('/mcp?sesion=1')).toEqual(refused);
    expect(await post(`${session.path}?sesion=1`)).toEqual(refused);
    expect(await post('/mcp/sessions/missing?sesion=1')).toEqual([
      404,
      { error: 'session not found', code: 'not_found' },
    ]);
  });

  it('HOST-ORIGIN: a foreign Host or Origin is refused on both surfaces', async () => {
    await start();
    const session = await newSession();
    for (const path of ['/mcp', session.path]) {
      const foreign = await running.http
        .post(path)
        .set({ ...JSON_HEADERS, origin: 'https://evil.example' })
        .send(INITIALIZE);
      expect([foreign.status, foreign.body.code]).toEqual([403, 'forbidden']);
      const rebound = await running.http
        .post(path)
        .set({ ...JSON_HEADERS, host: 'evil.example' })
        .send(INITIALIZE);
      expect([rebound.status, rebound.body.code]).toEqual([403, 'forbidden']);
    }
  });
});
