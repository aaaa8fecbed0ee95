import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RawBody, RestCaller } from '../support/callers.js';
import { dumpOf } from '../support/dump.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { makeEstate, type Estate } from '../support/estate.js';

const UNKNOWN = 'is not a known field';
const UNSTORABLE = 'must not contain U+0000 or a lone surrogate';
const NOT_A_CURSOR = 'is not a cursor that was returned as next_cursor';
const NOT_WHOLE = 'must be a whole number';

/** Bodies of a route, each with the beginning of the sentence that refuses it. */
type BadBodies = readonly (readonly [body: unknown, says: string])[];

/** A text of a route's body and how it may not be. */
function badTexts(field: string, rest: object, bounds: { readonly max: number; readonly optional?: true }): BadBodies {
  return [
    ...(bounds.optional === true ? [] : [[{ ...rest }, `${field} is required`] as const]),
    [{ ...rest, [field]: null }, `${field} must not be null`],
    ...[7, true, [], {}].map((value) => [{ ...rest, [field]: value }, `${field} must be text`] as const),
    [{ ...rest, [field]: 'x'.repeat(bounds.max + 1) }, `${field} must not be longer than ${bounds.max} characters`],
    ...['\u0000', 'a\u0000b', '\ud800', 'a\udfff'].map(
      (text) => [{ ...rest, [field]: text }, `${field} ${UNSTORABLE}`] as const,
    ),
  ];
}

const blank = (field: string, rest: object = {}): BadBodies =>
  ['', ' ', '\n\t'].map((text) => [{ ...rest, [field]: text }, `${field} must not be blank`] as const);

const notObjects: BadBodies = [null, [], 'text', 7, true].map((body) => [body, 'body must be an object'] as const);

const unknownIn = (rest: object): BadBodies => [
  [{ ...rest, nonsense: 1 }, `nonsense ${UNKNOWN}`],
  [
    new RawBody(JSON.stringify(rest).replace(/\}$/, `${rest === NONE ? '' : ','}"__proto__":{}}`)),
    `__proto__ ${UNKNOWN}`,
  ],
  [{ ...rest, constructor: 1 }, `constructor ${UNKNOWN}`],
  [{ ...rest, id: 'mine' }, `id ${UNKNOWN}`],
];
const NONE = {};

const badResume: BadBodies = [
  [{ resume: null }, 'resume must not be null'],
  [{ resume: 'pull' }, 'resume must be an object'],
  [{ resume: [] }, 'resume must be an object'],
  [{ resume: {} }, 'resume.mode is required'],
  [{ resume: { mode: 7 } }, 'resume.mode must be one of pull, webhook'],
  [{ resume: { mode: 'push' } }, 'resume.mode must be one of pull, webhook'],
  [{ resume: { mode: 'webhook', nonsense: 1 } }, `resume.nonsense ${UNKNOWN}`],
];

const session = (estate: Estate) => `/task-sessions/${estate.sessionId}`;

/** Every route that takes a body, but those of answers and questions, which have files of their own. */
const BODIES: readonly {
  readonly route: string;
  readonly path: (estate: Estate) => string;
  readonly bad: BadBodies;
}[] = [
  {
    route: 'POST /workspaces',
    path: () => '/workspaces',
    bad: [...badTexts('name', {}, { max: 200 }), ...blank('name'), ...unknownIn({ name: 'A' }), ...notObjects],
  },
  {
    route: 'POST /tasks',
    path: () => '/tasks',
    bad: [
      ...badTexts('title', {}, { max: 200 }),
      ...blank('title'),
      ...badTexts('description', { title: 'A' }, { max: 16_000, optional: true }),
      ...[7, true, [], {}].map((id) => [{ title: 'A', workspace_id: id }, 'workspace_id must be text'] as const),
      [{ title: 'A', workspace_id: null }, 'workspace_id must not be null'],
      [{ title: 'A', state: 'completed' }, `state ${UNKNOWN}`],
      ...unknownIn({ title: 'A' }),
      ...notObjects,
    ],
  },
  {
    route: 'POST /tasks/{id}/sessions',
    path: ({ taskId }) => `/tasks/${taskId}/sessions`,
    bad: [
      ...['true', 1, null, {}].map(
        (value) =>
          [
            { is_primary: value },
            value === null ? 'is_primary must not be null' : 'is_primary must be true or',
          ] as const,
      ),
      ...badResume,
      [{ agent_token: 'mine' }, `agent_token ${UNKNOWN}`],
      ...unknownIn(NONE),
      ...notObjects,
    ],
  },
  {
    route: 'PATCH /task-sessions/{id}',
    path: session,
    bad: [
      ...['paused', '', 'Completed', 7, true].map((state) => [{ state }, 'state must be one of created, '] as const),
      [{ state: null }, 'state must not be null'],
      [{ state: ['completed'] }, 'state must be text'],
      ...badResume,
      [{ is_primary: true }, `is_primary ${UNKNOWN}`],
      ...unknownIn(NONE),
      ...notObjects,
    ],
  },
  {
    route: 'POST /task-sessions/{id}/turns',
    path: (estate) => `${session(estate)}/turns`,
    bad: [
      ...badTexts('prompt', {}, { max: 64_000, optional: true }),
      ...blank('prompt'),
      ...unknownIn(NONE),
      ...notObjects,
    ],
  },
  {
    route: 'POST /task-sessions/{id}/messages',
    path: (estate) => `${session(estate)}/messages`,
    bad: [
      ...badTexts('content', {}, { max: 64_000 }),
      ...blank('content'),
      ...['', 'a b', 'ä', 'x'.repeat(129), 7, true, '\u0000'].map(
        (id) => [{ content: 'A', client_message_id: id }, 'client_message_id must'] as const,
      ),
      [{ content: 'A', client_message_id: null }, 'client_message_id must not be null'],
      [{ content: 'A', role: 'user' }, `role ${UNKNOWN}`],
      ...unknownIn({ content: 'A' }),
      ...notObjects,
    ],
  },
  ...[
    ['POST /tasks/{id}/complete', ({ taskId }: Estate) => `/tasks/${taskId}/complete`] as const,
    ['POST /task-sessions/{id}/agent-token', (estate: Estate) => `${session(estate)}/agent-token`] as const,
    [
      'POST /task-sessions/{id}/turns/{turnId}/complete',
      (estate: Estate) => `${session(estate)}/turns/${estate.turnId}/complete`,
    ] as const,
    ['POST /clarification/{id}/cancel', ({ pendingId }: Estate) => `/clarification/${pendingId}/cancel`] as const,
    ['DELETE /tasks/{id}', ({ taskId }: Estate) => `/tasks/${taskId}`] as const,
    ['GET /tasks/{id}', ({ taskId }: Estate) => `/tasks/${taskId}`] as const,
  ].map(([route, path]) => ({ route, path, bad: [...unknownIn(NONE), ...notObjects] })),
];

const cursorAndLimit: readonly (readonly [query: string, says: string])[] = [
  ...['x', 'eyJ', '%00', 'WzEsIngiLCJ5Il0', 'WzEsIjIwMjYtMDEtMDFUMDA6MDA6MDAuMDAwWiIsIiJd'].map(
    (cursor) => [`cursor=${cursor}`, 'cursor '] as const,
  ),
  [`cursor=${'x'.repeat(2049)}`, 'cursor must not be longer than 2048'],
  ['cursor=%20', `cursor ${NOT_A_CURSOR}`],
  ...['x', '1.5', '1e2', '', '%201', '0x10', 'null', '--1', 'NaN'].map(
    (limit) => [`limit=${limit}`, `limit ${NOT_WHOLE}`] as const,
  ),
  ['limit=1&limit=2', 'limit must be given once'],
  ['nonsense=1', `nonsense ${UNKNOWN}`],
  ['Limit=1', `Limit ${UNKNOWN}`],
  ['__proto__=1', `__proto__ ${UNKNOWN}`],
  ['limit[]=1', `"limit[]" ${UNKNOWN}`],
];

const createdSince: readonly string[] = [
  '2026-01-01',
  '2026-01-01T00:00:00',
  'yesterday',
  '1767225600',
  '2026-13-01T00:00:00Z',
  '2026-01-01T25:00:00Z',
  '2026-02-30T00:00:00Z',
  '2026-01-01 00:00:00Z',
  '0',
  ' ',
];

/** Every route that takes a query, and some that take none. */
const QUERIES: readonly {
  readonly route: string;
  readonly path: (estate: Estate) => string;
  readonly bad: readonly (readonly [query: string, says: string])[];
}[] = [
  { route: 'GET /tasks', path: () => '/tasks', bad: [...cursorAndLimit, ['workspace=1', `workspace ${UNKNOWN}`]] },
  {
    route: 'GET /clarification',
    path: () => '/clarification',
    bad: [
      ...cursorAndLimit,
      ...createdSince.map((text) => [`created_since=${encodeURIComponent(text)}`, 'created_since '] as const),
      ['created_since=2026-01-01T00:00:00+01:00', 'created_since '],
    ],
  },
  {
    route: 'GET /task-sessions/{id}/messages',
    path: (estate) => `${session(estate)}/messages`,
    bad: [
      ...cursorAndLimit,
      ...['', 'up', 'ASC'].map((order) => [`order=${order}`, 'order must be one of asc, desc'] as const),
    ],
  },
  {
    route: 'GET /task-sessions/{id}/mailbox',
    path: (estate) => `${session(estate)}/mailbox`,
    bad: [
      ['wait=-1', 'wait must be at least 0'],
      ['wait=61', 'wait must be at most 60'],
      ...['', 'x', '1.5'].map((wait) => [`wait=${wait}`, `wait ${NOT_WHOLE}`] as const),
      ['timeout=1', `timeout ${UNKNOWN}`],
    ],
  },
  {
    route: 'GET /clarification/{id}/wait',
    path: ({ pendingId }) => `/clarification/${pendingId}/wait`,
    bad: [
      ['timeout=-1', 'timeout must be at least 0'],
      ...['', 'x', '1.5', '1s'].map((timeout) => [`timeout=${timeout}`, `timeout ${NOT_WHOLE}`] as const),
      ['timeout_seconds=1', `timeout_seconds ${UNKNOWN}`],
    ],
  },
  ...[
    ['GET /workspaces', () => '/workspaces'] as const,
    ['GET /tasks/{id}', ({ taskId }: Estate) => `/tasks/${taskId}`] as const,
    ['GET /tasks/{id}/task-sessions', ({ taskId }: Estate) => `/tasks/${taskId}/task-sessions`] as const,
    ['GET /task-sessions/{id}', session] as const,
    ['GET /task-sessions/{id}/turns', (estate: Estate) => `${session(estate)}/turns`] as const,
    ['GET /clarification/{id}', ({ pendingId }: Estate) => `/clarification/${pendingId}`] as const,
  ].map(([route, path]) => ({
    route,
    path,
    bad: ['limit=1', 'cursor=', '__proto__=1'].map((query) => [query, `${query.split('=')[0]} ${UNKNOWN}`] as const),
  })),
];

describeEachEngine('N8d, UNKNOWN-FIELDS', (engine) => {
  let database: TestDatabase;
  let app: RunningApp;
  let rest: RestCaller;
  let estate: Estate;
  beforeAll(async () => {
    database = await engine.createDatabase();
    app = await startApp(database);
    rest = new RestCaller(app.url);
    estate = await makeEstate(rest);
  });
  afterAll(() => app.close());

  it.each(BODIES.map((row) => [row.route, row] as const))(
    'BAD-TYPES, BAD-TEXT: %s names what is wrong with its body, and writes nothing',
    async (route, { path, bad }) => {
      const before = await dumpOf(database);
      const [method = ''] = route.split(' ');
      for (const [body, says] of bad) {
        // A GET with a body is not what `fetch` sends.
        const refused = await (method === 'GET'
          ? getWithBody(path(estate), body)
          : rest.send(method, path(estate), body));
        const shown = JSON.stringify(body).slice(0, 80);
        expect([shown, refused.status, refused.json]).toEqual([
          shown,
          400,
          { error: expect.stringContaining(says), code: 'validation_failed' },
        ]);
        expect(refused.json.error.startsWith(says)).toBe(true);
      }
      expect(await dumpOf(database)).toEqual(before);
    },
  );

  it.each(QUERIES.map((row) => [row.route, row] as const))(
    'L10, L13: %s names what is wrong with its query',
    async (_, { path, bad }) => {
      for (const [query, says] of bad) {
        const refused = await rest.get(`${path(estate)}?${query}`);
        expect([query, refused.status, refused.json]).toEqual([
          query,
          400,
          { error: expect.stringContaining(says), code: 'validation_failed' },
        ]);
        expect(refused.json.error.startsWith(says)).toBe(true);
      }
    },
  );

  it('a query is no place for what belongs into a body: every route that takes a body refuses one', async () => {
    const before = await dumpOf(database);
    for (const { route, path } of BODIES) {
      const refused = await rest.send(route.split(' ')[0] ?? '', `${path(estate)}?name=A`);
      expect([route, refused.status, refused.json.code]).toEqual([route, 400, 'validation_failed']);
    }
    const answered = await rest.post(`/clarification/${estate.pendingId}/respond?rejected=true`, { rejected: true });
    expect([answered.status, answered.json]).toEqual([
      400,
      { error: `rejected ${UNKNOWN}`, code: 'validation_failed' },
    ]);
    expect(await dumpOf(database)).toEqual(before);
  });

  it('L9, L10: an empty filter or cursor is not given, and any whole number is a limit', async () => {
    for (const path of ['/tasks', '/clarification']) {
      for (const query of ['workspace_id=&cursor=', 'limit=0', 'limit=-5', 'limit=99999999999999999999', 'limit=-0']) {
        expect((await rest.get(`${path}?${query}`)).status).toBe(200);
      }
    }
    expect((await rest.get('/clarification?created_since=')).status).toBe(200);
  });

  describe('over MCP', () => {
    let mcp: McpCaller;
    beforeAll(async () => {
      mcp = await McpCaller.open(app.url);
    });

    const paging = [
      ...['x', 'eyJ', '\u0000', ' '].map((cursor) => [{ cursor }, 'cursor '] as const),
      [{ cursor: 'x'.repeat(2049) }, 'cursor must not be longer than 2048'] as const,
      ...['10', 1.5, true, [], {}].map((limit) => [{ limit }, `limit ${NOT_WHOLE}`] as const),
      [{ limit: null }, 'limit must not be null'] as const,
      [{ cursor: 7 }, 'cursor must be text'] as const,
      [{ nonsense: 1 }, `nonsense ${UNKNOWN}`] as const,
      [new RawBody('{"__proto__":{}}'), `__proto__ ${UNKNOWN}`] as const,
    ];
    const filter = [7, true, [], {}].map((id) => [{ workspace_id: id }, 'workspace_id must be text'] as const);
    const since = [
      ...createdSince.map((text) => [{ created_since: text }, 'created_since '] as const),
      [{ created_since: 1_767_225_600 }, 'created_since must be text'] as const,
      [{ created_since: '\u0000' }, 'created_since '] as const,
    ];

    it.each([
      ['list_pending_questions_kandev', [...paging, ...filter, ...since]],
      ['list_tasks_kandev', [...paging, ...filter]],
      [
        'list_workspaces_kandev',
        [
          [{ nonsense: 1 }, `nonsense ${UNKNOWN}`],
          [{ limit: 1 }, `limit ${UNKNOWN}`],
        ],
      ],
      [
        'get_task_conversation_kandev',
        [
          ...[undefined, null, 7].map(
            (id) =>
              [
                { task_id: id },
                `task_id ${id === undefined ? 'is required' : id === null ? 'must not be null' : 'must be text'}`,
              ] as const,
          ),
        ],
      ],
    ] as [string, (readonly [unknown, string])[]][])(
      'L10, L13: %s names what is wrong with its arguments',
      async (tool, bad) => {
        for (const [args, says] of bad) {
          const result = await mcp.call(tool, args);
          expect([JSON.stringify(args), result]).toEqual([
            JSON.stringify(args),
            { isError: true, text: expect.stringContaining(`validation_failed: ${says}`) },
          ]);
        }
      },
    );

    it('L10, L13: get_task_conversation_kandev names what is wrong with the rest', async () => {
      const rest = paging.filter(([args]) => !(args instanceof RawBody)) as unknown as (readonly [object, string])[];
      for (const [args, says] of rest) {
        const result = await mcp.call('get_task_conversation_kandev', { task_id: estate.taskId, ...args });
        expect(result).toEqual({ isError: true, text: expect.stringContaining(`validation_failed: ${says}`) });
      }
    });

    it('an unknown tool, and one of the other surface, is a protocol error that names it', async () => {
      for (const tool of ['no_such_tool', 'ask_user_question_kandev', 'wait_for_answer_kandev']) {
        await expect(mcp.call(tool, {})).rejects.toThrow(`unknown tool`);
      }
    });
  });

  async function getWithBody(path: string, body: unknown) {
    const { request } = await import('node:http');
    const text = body instanceof RawBody ? String(body.bytes) : JSON.stringify(body);
    return new Promise<{ status: number; json: { error: string } }>((resolve, reject) => {
      const sending = request(`${app.url}/api/v1${path}`, {
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
      });
      sending.on('error', reject);
      sending.on('response', (answer) => {
        let received = '';
        answer.on('data', (chunk: Buffer) => (received += chunk.toString('utf8')));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, json: JSON.parse(received) }));
      });
      sending.end(text);
    });
  }
});
