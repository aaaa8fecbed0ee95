import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { fieldsOf } from '../../src/common/input/fields.js';
import { encodeCursor } from '../../src/common/page-cursor.js';
import { ContractedRoutes, type Route } from '../../src/http/contracted-routes.js';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller, type Heard } from '../support/callers.js';
import { describeEachEngine } from '../support/engines.js';
import { makeEstate, type Estate } from '../support/estate.js';
import { StatementRecorder } from '../support/statement-recorder.js';

/** What an id in a path names, by the segment in front of it; a route with another one needs its line here. */
const IN_PATH: Readonly<Record<string, keyof Estate>> = {
  tasks: 'taskId',
  'task-sessions': 'sessionId',
  sessions: 'sessionId',
  turns: 'turnId',
  mailbox: 'turnId',
  clarification: 'pendingId',
};

/** What a field names, by its name. */
const IN_FIELD: Readonly<Record<string, keyof Estate>> = {
  workspace_id: 'workspaceId',
  task_id: 'taskId',
  session_id: 'sessionId',
  turn_id: 'turnId',
  pending_id: 'pendingId',
};

/** One id in a request whose other ids are the caller's own. */
interface Place {
  readonly what: string;
  readonly names: keyof Estate;
  readonly ask: (id: string) => Promise<Heard>;
}

describeEachEngine('A3: what cannot be reached costs the same, whether it is there or not', (engine) => {
  const recorder = new StatementRecorder();
  let app: RunningApp;
  let own: Estate;
  let foreign: Estate;
  let callers: Readonly<Record<'owner' | 'agent', RestCaller>>;
  let foreignCursors: Readonly<Record<string, string>>;

  beforeAll(async () => {
    app = await startApp({ url: await engine.createUrl() }, { authMode: 'enforced', recorder });
    const [owner, other] = [await app.createUser(), await app.createUser()].map(
      ({ token }) => new RestCaller(app.url, token),
    ) as [RestCaller, RestCaller];
    [own, foreign] = [await makeEstate(owner), await makeEstate(other)];
    await makeEstate(other, { workspaceId: foreign.workspaceId });
    callers = { owner, agent: new RestCaller(app.url, own.agentToken) };
    const cursorOf = async (path: string): Promise<string> => (await other.make('GET', path)).next_cursor;
    await other.make('POST', `/task-sessions/${foreign.sessionId}/messages`, { content: 'One more' });
    foreignCursors = {
      '/api/v1/tasks': await cursorOf('/tasks?limit=1'),
      '/api/v1/clarification': await cursorOf('/clarification?limit=1'),
    };
  });
  afterAll(() => app.close());

  /** The statements that a request sends, in their order. What runs beside requests is left out. */
  async function statementsOf(ask: () => Promise<Heard>): Promise<{ answer: Heard; statements: readonly string[] }> {
    recorder.clear();
    const answer = await ask();
    const statements = recorder.statements
      .filter((statement) => statement.in !== 'token.use' && !statement.sql.includes('AS kind, id, expires_at'))
      .map((statement) => `${statement.in}: ${statement.sql}`);
    return { answer, statements };
  }

  /** Foreign, missing and malformed give the same statements, and the same answer. */
  async function expectOneCost({ what, names, ask }: Place): Promise<Heard> {
    const missing = await statementsOf(() => ask(randomUUID()));
    for (const [kind, id] of [
      ['foreign', foreign[names]],
      ['malformed', 'x'.repeat(500)],
      ['foreign, again', foreign[names]],
    ] as const) {
      const { answer, statements } = await statementsOf(() => ask(id));
      expect([what, kind, statements]).toEqual([what, kind, missing.statements]);
      expect([what, kind, answer.status, answer.text]).toEqual([
        what,
        kind,
        missing.answer.status,
        missing.answer.text,
      ]);
    }
    return missing.answer;
  }

  /** Every id in the path, the query and the body of a route, for everybody who may use it. */
  function placesOf({ method, path, contract }: Route): Place[] {
    const { access } = contract;
    if (access.kind === 'open') return [];
    const roles = [
      ...(!('users' in access && access.users === false) ? (['owner'] as const) : []),
      ...(access.agents ? (['agent'] as const) : []),
    ];
    const segments = path.split('/');
    const namedBy = (index: number): keyof Estate => {
      const names = IN_PATH[segments[index - 1] ?? ''];
      if (names === undefined) throw new Error(`what does ${segments[index]} of ${path} name?`);
      return names;
    };
    const isId = (segment: string) => segment.startsWith('{');
    const pathWith = (at: number, id: string) =>
      segments.map((segment, index) => (index === at ? id : isId(segment) ? own[namedBy(index)] : segment)).join('/');
    const fields = contract.query === undefined ? [] : [...fieldsOf(contract.query).keys()];
    const bodyField = 'from' in access && 'body' in access.from ? [access.from.body] : [];
    const send = (role: 'owner' | 'agent', to: string, body?: object) =>
      callers[role].send(method.toUpperCase(), to, method === 'get' ? undefined : (body ?? {}));
    return roles.flatMap((role) => {
      const what = `${method} ${path} by the ${role}`;
      return [
        ...segments.flatMap((segment, at) =>
          isId(segment)
            ? [{ what: `${what}: ${segment}`, names: namedBy(at), ask: (id: string) => send(role, pathWith(at, id)) }]
            : [],
        ),
        ...[...fields, ...bodyField].flatMap((field) => {
          const names = IN_FIELD[field];
          const inBody = bodyField.includes(field);
          if (names === undefined) return [];
          return [
            {
              what: `${what}: ${field}`,
              names,
              ask: (id: string) =>
                inBody
                  ? send(role, pathWith(-1, ''), { [field]: id })
                  : send(role, `${pathWith(-1, '')}?${field}=${encodeURIComponent(id)}`),
            },
          ];
        }),
      ];
    });
  }

  it('over every route and every id in it, as the contracts have them', async () => {
    const places = app.app.get(ContractedRoutes).all().flatMap(placesOf);
    const asked = places.map(({ what }) => what);
    // So that a change to the contracts cannot leave nothing to look at.
    expect(asked.length).toBeGreaterThan(35);
    for (const [count, kind] of [
      [2, 'workspace_id'],
      [5, '/tasks/{id}'],
      [4, '{turnId}'],
      [7, 'clarification/{id}'],
      [2, 'session_id'],
    ] as const) {
      expect([kind, asked.filter((what) => what.includes(kind)).length >= count]).toEqual([kind, true]);
    }
    for (const place of places) {
      const { status } = await expectOneCost(place);
      expect([place.what, status]).toEqual([
        place.what,
        place.what.endsWith('workspace_id') ? expect.any(Number) : 404,
      ]);
    }
  });

  it('over every tool and every id that it takes', async () => {
    const surfaces = [
      await McpCaller.open(app.url, '/mcp', callers.owner.token),
      await McpCaller.open(app.url, `/mcp/sessions/${own.sessionId}`, own.agentToken),
    ];
    let asked = 0;
    for (const mcp of surfaces) {
      for (const { name: tool, inputSchema } of await mcp.tools()) {
        for (const field of Object.keys(inputSchema.properties)) {
          const names = IN_FIELD[field];
          if (names === undefined) continue;
          asked += 1;
          // A session is looked for in a task, which is the caller's own.
          const others = field === 'session_id' ? { task_id: own.taskId } : {};
          const answer = await expectOneCost({
            what: `${tool}: ${field}`,
            names,
            ask: async (id) => {
              const { text } = await mcp.call(tool, { ...others, [field]: id });
              return { status: 200, headers: new Headers(), text, json: undefined };
            },
          });
          if (!['workspace_id', 'task_id'].includes(field)) expect(answer.text).toMatch(/^not_found: /);
        }
      }
    }
    expect(asked).toBeGreaterThanOrEqual(6);
  });

  it('and is told at a whole step of time, so that what is fetched before it is refused does not show', async () => {
    const mcp = await McpCaller.open(app.url, '/mcp', callers.owner.token);
    const took: Record<string, number[]> = {};
    for (let round = 0; round < 20; round += 1) {
      for (const [kind, id] of [
        ['foreign', foreign.pendingId],
        ['missing', randomUUID()],
      ] as const) {
        const asks = {
          REST: async () => (await callers.owner.get(`/clarification/${id}`)).json.code as string,
          MCP: async () => (await mcp.call('answer_question_kandev', { pending_id: id, rejected: true })).text,
        };
        for (const [surface, ask] of Object.entries(asks)) {
          const before = performance.now();
          expect(await ask()).toMatch(/^not_found/);
          (took[`${kind} over ${surface}`] ??= []).push(performance.now() - before);
        }
      }
    }
    // Nothing but that it was held back: a step is 5 ms, and timers count whole ones.
    const quickest = Object.entries(took).map(([what, times]) => [what, Math.min(...times) >= 4]);
    expect(Object.fromEntries(quickest)).toEqual(Object.fromEntries(Object.keys(took).map((what) => [what, true])));
    expect(quickest).toHaveLength(4);
  });

  it.each(['/api/v1/tasks', '/api/v1/clarification'])(
    '%s: from a cursor that names what is somebody else’s as from one that names nothing',
    async (path) => {
      const cursor = foreignCursors[path] ?? '';
      const [, createdAt = ''] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as string[];
      const from = (next: string) => statementsOf(() => callers.owner.get(`${path}?cursor=${next}`));
      const [named, invented] = [await from(cursor), await from(encodeCursor({ createdAt, id: randomUUID() }))];
      expect(named.answer.status).toBe(200);
      expect(named.statements).toEqual(invented.statements);
    },
  );
});
