import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ContractedRoutes } from '../../src/http/contracted-routes.js';
import { startApp, type RunningApp } from '../support/app.js';
import { callText, McpCaller, replyIn, RestCaller } from '../support/callers.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, ask, makeEstate, type Estate } from '../support/estate.js';

type Kind = 'workspace' | 'task' | 'session' | 'turn' | 'bundle';

const SENTENCES: Readonly<Record<Kind, string>> = {
  workspace: 'workspace not found',
  task: 'task not found',
  session: 'session not found',
  turn: 'turn not found',
  bundle: 'clarification request not found',
};

/** Where an id stands, and the whole request around it. `id` is put in as it is, so a path can be broken. */
interface Place {
  /** As the application's own list names the route, or the name of the tool. */
  readonly of: string;
  readonly where: string;
  readonly kind: Kind;
  /** Who asks: the owner, or the agent of the owner's session. */
  readonly by: 'owner' | 'agent';
  readonly path: (own: Estate, id: string) => string;
  readonly body?: (own: Estate, id: string) => Record<string, unknown>;
}

const session = (own: Estate) => `/api/v1/task-sessions/${own.sessionId}`;
const question = { prompt: 'Which?', options: [{ label: 'A' }, { label: 'B' }] };

const ofTask = (of: string, rest = '', body?: object): Place => ({
  ...{ of, where: 'path', kind: 'task', by: 'owner', path: (_, id) => `/api/v1/tasks/${id}${rest}` },
  ...(body && { body: () => ({ ...body }) }),
});
const ofSession = (by: Place['by'], of: string, rest = '', body?: object): Place => ({
  ...{ of, where: 'path', kind: 'session', by, path: (_, id) => `/api/v1/task-sessions/${id}${rest}` },
  ...(body && { body: () => ({ ...body }) }),
});
const ofBundle = (by: Place['by'], of: string, rest = '', body?: object): Place => ({
  ...{ of, where: 'path', kind: 'bundle', by, path: (_, id) => `/api/v1/clarification/${id}${rest}` },
  ...(body && { body: () => ({ ...body }) }),
});
const both = (make: (by: Place['by']) => Place): Place[] => [make('owner'), make('agent')];

const PLACES: readonly Place[] = [
  {
    ...{ of: 'POST /api/v1/tasks', where: 'workspace_id', kind: 'workspace', by: 'owner', path: () => '/api/v1/tasks' },
    body: (_, id) => ({ title: 'A task', workspace_id: id }),
  },
  ofTask('GET /api/v1/tasks/{id}'),
  ofTask('DELETE /api/v1/tasks/{id}'),
  ofTask('POST /api/v1/tasks/{id}/complete', '/complete'),
  ofTask('POST /api/v1/tasks/{id}/sessions', '/sessions', {}),
  ofTask('GET /api/v1/tasks/{id}/task-sessions', '/task-sessions'),
  ...both((by) => ofSession(by, 'GET /api/v1/task-sessions/{id}')),
  ofSession('owner', 'PATCH /api/v1/task-sessions/{id}', '', { state: 'failed' }),
  ofSession('owner', 'POST /api/v1/task-sessions/{id}/agent-token', '/agent-token'),
  ...both((by) => ofSession(by, 'POST /api/v1/task-sessions/{id}/turns', '/turns', {})),
  ...both((by) => ofSession(by, 'GET /api/v1/task-sessions/{id}/turns', '/turns')),
  ...both((by) => ofSession(by, 'GET /api/v1/task-sessions/{id}/messages', '/messages')),
  ...both((by) => ofSession(by, 'POST /api/v1/task-sessions/{id}/messages', '/messages', { content: 'Hello' })),
  ...both((by) => ofSession(by, 'GET /api/v1/task-sessions/{id}/mailbox', '/mailbox')),
  ...['turns/{turnId}/complete', 'mailbox/{turnId}/ack'].flatMap((rest) => {
    const of = `POST /api/v1/task-sessions/{id}/${rest}`;
    return both((by) => ({
      ...ofSession(by, of),
      path: (own, id) => `/api/v1/task-sessions/${id}/${rest.replace('{turnId}', own.turnId)}`,
    })).concat(
      both((by) => ({
        ...{ of, where: 'turnId', kind: 'turn', by },
        path: (own, id) => `${session(own)}/${rest.replace('{turnId}', id)}`,
      })),
    );
  }),
  ...both((by) => ({
    ...{ of: 'POST /api/v1/clarification/request', where: 'session_id', kind: 'session', by },
    path: () => '/api/v1/clarification/request',
    body: (_, id) => ({ session_id: id, questions: [question] }),
  })),
  ...both((by) => ofBundle(by, 'GET /api/v1/clarification/{id}')),
  ...both((by) => ofBundle(by, 'GET /api/v1/clarification/{id}/wait', '/wait')),
  ofBundle('owner', 'POST /api/v1/clarification/{id}/respond', '/respond', answersTo(['q1'])),
  ...both((by) => ofBundle(by, 'POST /api/v1/clarification/{id}/cancel', '/cancel')),
  ...['POST', 'GET', 'DELETE'].map((method): Place => ({
    ...{ of: `${method} /mcp/sessions/{sessionId}`, where: 'path', kind: 'session', by: 'agent' },
    path: (_, id) => `/mcp/sessions/${id}`,
    ...(method === 'POST' && { body: () => ({ jsonrpc: '2.0', id: 1, method: 'ping' }) }),
  })),
];

/** Lists take the id of a workspace to narrow by: one that is not there, or not for the caller, gives an empty page. */
const FILTERS = ['/api/v1/tasks', '/api/v1/clarification'];

/** A tool's argument that names something. */
interface Argument {
  readonly tool: string;
  readonly name: string;
  readonly kind: Kind;
  readonly args: (own: Estate, id: string) => Record<string, unknown>;
  readonly surface: 'external' | 'session';
}

const ARGUMENTS: readonly Argument[] = [
  {
    ...{ tool: 'answer_question_kandev', name: 'pending_id', kind: 'bundle', surface: 'external' },
    args: (_, id) => ({ pending_id: id, ...answersTo(['q1']) }),
  },
  {
    ...{ tool: 'get_task_conversation_kandev', name: 'task_id', kind: 'task', surface: 'external' },
    args: (_, id) => ({ task_id: id }),
  },
  {
    ...{ tool: 'get_task_conversation_kandev', name: 'session_id', kind: 'session', surface: 'external' },
    args: (own, id) => ({ task_id: own.taskId, session_id: id }),
  },
  {
    ...{ tool: 'wait_for_answer_kandev', name: 'pending_id', kind: 'bundle', surface: 'session' },
    args: (_, id) => ({ pending_id: id, timeout_seconds: 0 }),
  },
];
const TOOL_FILTERS = ['list_pending_questions_kandev', 'list_tasks_kandev'];

/** How no id looks, in a path: cut short, undecodable, not ours, too long, another language, and other things' tricks. */
const MALFORMED_IN_PATH: readonly string[] = [
  '%ZZ',
  '%',
  '%00',
  '%FF%FE',
  '%E0%A4%A',
  'x'.repeat(10_000),
  '%F0%9F%98%80',
  '%C3%A4%E2%80%AE',
  '%20',
  '%2F',
  '..%2F..',
  "'%20OR%201=1--",
  '%25',
  '*',
  'null',
  'undefined',
];

const MALFORMED_IN_JSON: readonly string[] = [
  '%ZZ',
  '%00',
  '\u0000',
  'a\u0000b',
  '\ud800',
  'x'.repeat(10_000),
  '😀',
  'ä‮',
  ' ',
  '/',
  "' OR 1=1--",
  '__proto__',
];

/** The ids of existing things that the owner, or the agent of the owner's session, may not reach as `kind`. */
interface Hidden {
  readonly owner: Readonly<Record<Kind, readonly string[]>>;
  readonly agent: Readonly<Record<Kind, readonly string[]>>;
}

/** Not found is told whatever else is wrong with a request (404 before 400): existing things are asked for both ways. */
function withJunk(malformed: readonly string[], existing: readonly string[]): [id: string, junk: boolean][] {
  return [
    ...malformed.map((id, index): [string, boolean] => [id, index % 2 === 0]),
    ...existing.flatMap((id): [string, boolean][] => [
      [id, false],
      [id, true],
    ]),
  ];
}

describeEachEngine('A1, A2, A3, A5', (engine) => {
  let database: TestDatabase;
  let app: RunningApp;
  let own: Estate;
  /** A session of another task of the owner's. */
  let ownElsewhere: string;
  let hidden: Hidden;
  let tokens: { readonly owner: string; readonly agent: string };

  beforeAll(async () => {
    database = await engine.createDatabase();
    app = await startApp(database, { authMode: 'enforced' });
    const [owner, other] = [await app.createUser(), await app.createUser()];
    own = await makeEstate(new RestCaller(app.url, owner.token));
    tokens = { owner: owner.token, agent: own.agentToken };
    hidden = await arrange(new RestCaller(app.url, owner.token), new RestCaller(app.url, other.token));
  });
  const connections = new Agent({ keepAlive: true });
  afterAll(async () => {
    connections.destroy();
    await app.close();
  });

  /** Everything of an answer but its date and its own id. */
  async function seen(place: Place, id: string, junk: boolean): Promise<string> {
    const [method = ''] = place.of.split(' ');
    const junkQuery = junk && method === 'GET' && !place.path(own, id).startsWith('/mcp') ? '?nonsense=1' : '';
    const body = place.body?.(own, id) ?? (junk && method === 'POST' ? {} : undefined);
    const text = body === undefined ? '' : JSON.stringify(junk ? { ...body, nonsense: 1 } : body);
    return sent(`${method} ${place.path(own, id)}${junkQuery}`, tokens[place.by], text);
  }

  function sent(requestLine: string, token: string, text: string, headers: Record<string, string> = {}) {
    const [method = '', path = ''] = requestLine.split(/ (.*)/s);
    return new Promise<string>((resolve, reject) => {
      const { hostname, port } = new URL(app.url);
      const accept = 'application/json, text/event-stream';
      const sending = request({
        hostname,
        port,
        method,
        path,
        agent: connections,
        headers: {
          authorization: `Bearer ${token}`,
          accept,
          ...(text !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
          ...headers,
        },
      });
      sending.on('error', reject);
      sending.on('response', (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => {
          const names = answer.rawHeaders.filter((_, index) => index % 2 === 0);
          const told = names
            .map((name, index) => `${name}: ${answer.rawHeaders[index * 2 + 1]}`)
            .filter((line) => !/^(date|x-request-id):/i.test(line));
          resolve(
            JSON.stringify({ status: answer.statusCode, headers: told, body: Buffer.concat(chunks).toString('utf8') }),
          );
        });
      });
      sending.end(text);
    });
  }

  it('every route that names something by an id is in the table below', () => {
    const routes = app.app
      .get(ContractedRoutes)
      .all()
      .flatMap(({ method, path, contract }) => {
        const of = `${method.toUpperCase()} ${path}`;
        const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `${of} ${name === 'turnId' ? name : 'path'}`);
        const { access } = contract;
        return 'from' in access && 'body' in access.from ? [...inPath, `${of} ${access.from.body}`] : inPath;
      });
    expect([...new Set(PLACES.map(({ of, where }) => `${of} ${where}`))].sort()).toEqual([...new Set(routes)].sort());
  });

  it.each(PLACES.map((place) => [place.of, place.where, place.by, place] as const))(
    '%s: whatever cannot be reached by the id in %s is one 404, byte for byte, for the %s',
    async (_, __, by, place) => {
      const reference = await seen(place, randomUUID(), false);
      expect(JSON.parse(reference)).toMatchObject({
        status: 404,
        body: JSON.stringify({ error: SENTENCES[place.kind], code: 'not_found' }),
      });
      const inPath = place.where === 'path' || place.where === 'turnId';
      const malformed = inPath ? MALFORMED_IN_PATH : MALFORMED_IN_JSON;
      for (const [id, junk] of withJunk(malformed, hidden[by][place.kind])) {
        expect([id.slice(0, 60), junk, await seen(place, id, junk)]).toEqual([id.slice(0, 60), junk, reference]);
      }
    },
  );

  it.each(FILTERS)('GET %s: a workspace that is not there, or not the caller’s, is an empty page', async (path) => {
    const empty = async (id: string) => sent(`GET ${path}?workspace_id=${id}`, tokens.owner, '');
    const reference = await empty(randomUUID());
    expect(JSON.parse(reference)).toMatchObject({ status: 200, body: expect.stringContaining('"next_cursor":""') });
    for (const id of [...MALFORMED_IN_PATH, ...hidden.owner.workspace]) {
      expect([id.slice(0, 60), await empty(id)]).toEqual([id.slice(0, 60), reference]);
    }
  });

  describe('N5: over MCP', () => {
    let external: McpCaller;
    let inSession: McpCaller;
    beforeAll(async () => {
      external = await McpCaller.open(app.url, '/mcp', tokens.owner);
      inSession = await McpCaller.open(app.url, `/mcp/sessions/${own.sessionId}`, tokens.agent);
    });

    /** The whole HTTP answer to a call, whose id is always the same. */
    async function called(mcp: McpCaller, tool: string, args: Record<string, unknown>): Promise<string> {
      const path = new URL(mcp.endpoint).pathname;
      const { 'mcp-session-id': id, 'mcp-protocol-version': version, authorization } = mcp.headers;
      const text = callText(7, 'tools/call', { name: tool, arguments: args });
      return sent(`POST ${path}`, authorization?.slice('Bearer '.length) ?? '', text, {
        'mcp-session-id': id ?? '',
        'mcp-protocol-version': version ?? '',
      });
    }

    it('every argument that names something is in the table below', async () => {
      for (const [mcp, surface] of [[external, 'external'] as const, [inSession, 'session'] as const]) {
        const named = (await mcp.tools()).flatMap(({ name, inputSchema }) =>
          Object.keys(inputSchema.properties)
            .filter((property) => /^(workspace|task|session|turn|pending)_id$/.test(property))
            .map((property) => `${name} ${property}`),
        );
        const known = [
          ...ARGUMENTS.filter((argument) => argument.surface === surface).map(({ tool, name }) => `${tool} ${name}`),
          ...(surface === 'external' ? TOOL_FILTERS.map((tool) => `${tool} workspace_id`) : []),
          // Accepted and ignored (A8).
          ...(surface === 'external' ? ['answer_question_kandev task_id'] : []),
        ];
        expect(named.sort()).toEqual(known.sort());
      }
    });

    it.each(ARGUMENTS.map((argument) => [argument.tool, argument.name, argument] as const))(
      '%s: whatever cannot be reached by %s is one not_found, byte for byte',
      async (_, __, argument) => {
        const mcp = argument.surface === 'external' ? external : inSession;
        const call = (id: string, junk: boolean) =>
          called(mcp, argument.tool, { ...argument.args(own, id), ...(junk && { nonsense: 1 }) });
        const reference = await call(randomUUID(), false);
        const { status, body } = JSON.parse(reference) as { status: number; body: string };
        expect(status).toBe(200);
        expect(replyIn(body).result).toEqual({
          content: [{ type: 'text', text: `not_found: ${SENTENCES[argument.kind]}` }],
          isError: true,
        });
        const by = argument.surface === 'external' ? 'owner' : 'agent';
        const existing = [
          ...hidden[by][argument.kind],
          // A session of another task, though the caller's own, is no session of this one.
          ...(argument.kind === 'session' ? [ownElsewhere] : []),
        ];
        for (const [id, junk] of withJunk(MALFORMED_IN_JSON, existing)) {
          expect([id.slice(0, 60), junk, await call(id, junk)]).toEqual([id.slice(0, 60), junk, reference]);
        }
      },
    );

    it.each(TOOL_FILTERS)('%s: a workspace that is not there, or not the caller’s, is an empty page', async (tool) => {
      const reference = await called(external, tool, { workspace_id: randomUUID() });
      expect(replyIn((JSON.parse(reference) as { body: string }).body).result).not.toHaveProperty('isError');
      for (const id of [...MALFORMED_IN_JSON, ...hidden.owner.workspace]) {
        expect([id.slice(0, 60), await called(external, tool, { workspace_id: id })]).toEqual([
          id.slice(0, 60),
          reference,
        ]);
      }
    });
  });

  /** Things of somebody else's, in every state that could show; and of the owner's own, in the wrong place. */
  async function arrange(owner: RestCaller, other: RestCaller): Promise<Hidden> {
    const foreign = await makeEstate(other);
    const foreignAgent = new RestCaller(app.url, foreign.agentToken);
    const answered = await makeEstate(other, { workspaceId: foreign.workspaceId });
    await other.make('POST', `/clarification/${answered.pendingId}/respond`, answersTo(['q1']));
    const rejected = await makeEstate(other, { workspaceId: foreign.workspaceId });
    await other.make('POST', `/clarification/${rejected.pendingId}/respond`, { rejected: true });
    const cancelled = await ask(foreignAgent, foreign.sessionId, ['cancelled']);
    await foreignAgent.make('POST', `/clarification/${cancelled}/cancel`);
    const superseded = await makeEstate(other, { workspaceId: foreign.workspaceId });
    const newTurn = await other.make('POST', `/task-sessions/${superseded.sessionId}/turns`, { prompt: 'Go on' });
    const foreignBundles = [
      ...[foreign, answered, rejected, superseded].map(({ pendingId }) => pendingId),
      cancelled,
      await bundleOfNoTask(other),
      await bundleOfTwoTasks(own.taskId, foreign.taskId),
    ];
    const foreignThings = {
      workspace: [foreign.workspaceId],
      task: [foreign.taskId, answered.taskId],
      session: [foreign.sessionId, answered.sessionId, superseded.sessionId],
      turn: [foreign.turnId, superseded.turnId, newTurn.id],
      bundle: foreignBundles,
    };

    const elsewhere = await makeEstate(owner, { workspaceId: own.workspaceId });
    ownElsewhere = elsewhere.sessionId;
    const sibling = await owner.make('POST', `/tasks/${own.taskId}/sessions`, {});
    const ofSibling = await ask(new RestCaller(app.url, sibling.agent_token), sibling.id);
    // An id of another kind names nothing.
    return {
      owner: {
        workspace: [...foreignThings.workspace, own.taskId],
        task: [...foreignThings.task, own.sessionId],
        session: [...foreignThings.session, own.taskId],
        turn: [...foreignThings.turn, elsewhere.turnId, own.pendingId],
        bundle: [...foreignThings.bundle, own.turnId],
      },
      agent: {
        workspace: [],
        task: [],
        session: [...foreignThings.session, sibling.id, elsewhere.sessionId, own.taskId],
        turn: [...foreignThings.turn, elsewhere.turnId, own.pendingId],
        bundle: [...foreignThings.bundle, ofSibling, elsewhere.pendingId, own.turnId],
      },
    };
  }

  /** M5a: neither the rows nor their session name a task. Such rows are older than the product's own. */
  async function bundleOfNoTask(other: RestCaller): Promise<string> {
    const { taskId, pendingId } = await makeEstate(other);
    await database.sql(
      `INSERT INTO tasks SELECT '', workspace_id, title, description, state, created_at, updated_at
      FROM tasks WHERE id = $1`,
      [taskId],
    );
    await database.sql(`UPDATE task_sessions SET task_id = '' WHERE task_id = $1`, [taskId]);
    await database.sql(`UPDATE task_session_messages SET task_id = '' WHERE task_id = $1`, [taskId]);
    return pendingId;
  }

  /** M5: its rows name different tasks, one of them the owner's. */
  async function bundleOfTwoTasks(first: string, second: string): Promise<string> {
    const owner = new RestCaller(app.url, tokens.owner);
    const { taskId, pendingId } = await makeEstate(owner, { questions: ['q1', 'q2'] });
    await database.sql(
      `UPDATE task_session_messages SET task_id = CASE content WHEN 'Which of q1?' THEN $2 ELSE $3 END WHERE task_id = $1`,
      [taskId, first, second],
    );
    return pendingId;
  }
});
