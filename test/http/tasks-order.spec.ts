import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { RawBody, RestCaller, type Heard } from '../support/callers.js';
import { describeEachEngine } from '../support/engines.js';
import { answersTo, makeEstate, type Estate } from '../support/estate.js';

/**
 * A request with everything wrong that can be, and in what order it has to be put right. Each step keeps the later
 * faults, so that it shows which of them is told.
 */
interface Order {
  readonly route: string;
  readonly path: (estate: Estate) => string;
  /** What validation refuses, and what is right but meets a state that does not allow it. */
  readonly invalid: object;
  readonly valid: object | undefined;
  readonly conflict: string;
  /** Whether the session's own agent may make the call. */
  readonly agents: boolean;
  /** The id stands in the body. */
  readonly names?: (estate: Estate) => object;
}

const session = (estate: Estate) => `/task-sessions/${estate.sessionId}`;
const question = { prompt: 'Which?', options: [{ label: 'A' }, { label: 'B' }] };

/** Of an estate whose question was cancelled and whose session has ended, on a task that was cancelled. */
const ORDERS: readonly Order[] = [
  {
    route: 'POST /clarification/{id}/respond',
    path: ({ pendingId }) => `/clarification/${pendingId}/respond`,
    invalid: { answers: 7 },
    valid: answersTo(['q1']),
    conflict: 'not_active',
    agents: false,
  },
  {
    route: 'POST /clarification/{id}/cancel',
    path: ({ pendingId }) => `/clarification/${pendingId}/cancel`,
    invalid: { nonsense: 1 },
    valid: undefined,
    conflict: 'not_active',
    agents: true,
  },
  {
    route: 'POST /clarification/request',
    path: () => '/clarification/request',
    invalid: { questions: 7 },
    valid: { questions: [question] },
    conflict: 'conflict',
    agents: true,
    names: ({ sessionId }) => ({ session_id: sessionId }),
  },
  {
    route: 'PATCH /task-sessions/{id}',
    path: session,
    invalid: { state: 'paused' },
    valid: { state: 'running' },
    conflict: 'conflict',
    agents: false,
  },
  {
    route: 'POST /task-sessions/{id}/turns',
    path: (estate) => `${session(estate)}/turns`,
    invalid: { prompt: '' },
    valid: { prompt: 'Go on' },
    conflict: 'conflict',
    agents: true,
  },
  {
    route: 'POST /task-sessions/{id}/messages',
    path: (estate) => `${session(estate)}/messages`,
    invalid: { content: 7 },
    valid: { content: 'Hello' },
    conflict: 'conflict',
    agents: true,
  },
  {
    route: 'POST /tasks/{id}/complete',
    path: ({ taskId }) => `/tasks/${taskId}/complete`,
    invalid: { nonsense: 1 },
    valid: {},
    conflict: 'conflict',
    agents: false,
  },
];

describeEachEngine('ORDER', (engine) => {
  describe.each(['enforced', 'disabled'] as const)('with authentication %s', (authMode) => {
    let app: RunningApp;
    let estate: Estate;
    let tokens: { owner: string; other: string; otherAgent: string };
    beforeAll(async () => {
      const database = await engine.createDatabase();
      app = await startApp(database, { authMode, env: { BODY_LIMIT_BYTES: '16384' } });
      const [owner, other] = [await app.createUser(), await app.createUser()];
      const rest = new RestCaller(app.url, owner.token);
      estate = await makeEstate(rest);
      await rest.make('POST', `/clarification/${estate.pendingId}/cancel`);
      await rest.make('PATCH', session(estate), { state: 'completed' });
      await database.sql(`UPDATE tasks SET state = 'cancelled' WHERE id = $1`, [estate.taskId]);
      const elsewhere = await makeEstate(new RestCaller(app.url, other.token));
      tokens = { owner: owner.token, other: other.token, otherAgent: elsewhere.agentToken };
    });
    afterAll(() => app.close());

    it.each(ORDERS.map((order) => [order.route, order] as const))(
      '%s: 401, a body that cannot be read, 403, 404, 400, 409',
      async (route, order) => {
        const [method = ''] = route.split(' ');
        const body = (rest: object | undefined): object | undefined =>
          order.names === undefined ? rest : { ...order.names(estate), ...rest };
        const send = (token: string | undefined, sent: unknown): Promise<Heard> =>
          new RestCaller(app.url, token).send(method, order.path(estate), sent);
        const seen = async (token: string | undefined, sent: unknown): Promise<string> => {
          const { status, json } = await send(token, sent);
          return `${status} ${json.code}`;
        };
        const unreadable = new RawBody('{');
        const large = new RawBody(JSON.stringify({ ...body(order.invalid), nonsense: 'x'.repeat(20_000) }));
        const typeless = new RawBody(JSON.stringify(body(order.invalid)), 'text/plain');

        for (const token of ['nonsense', `clu_${'x'.repeat(43)}`, ...(authMode === 'enforced' ? [undefined] : [])]) {
          for (const sent of [unreadable, large, typeless, body(order.invalid), body(order.valid)]) {
            expect(await seen(token, sent)).toBe('401 unauthorized');
          }
        }
        const agents = order.agents ? [] : [estate.agentToken, tokens.otherAgent];
        const strangers = [tokens.other, ...(order.agents ? [tokens.otherAgent] : [])];
        const insiders = [tokens.owner, ...(order.agents ? [estate.agentToken] : [])];
        for (const token of [...agents, ...strangers, ...insiders]) {
          expect(await seen(token, unreadable)).toBe('400 validation_failed');
          expect(await seen(token, large)).toBe('413 payload_too_large');
          expect(await seen(token, typeless)).toBe('415 unsupported_media_type');
        }
        for (const sent of [body(order.invalid), body(order.valid)]) {
          for (const token of agents) expect(await seen(token, sent)).toBe('403 forbidden');
          for (const token of strangers) expect(await seen(token, sent)).toBe('404 not_found');
        }
        for (const token of insiders) {
          expect(await seen(token, body(order.invalid))).toBe('400 validation_failed');
          expect(await seen(token, body(order.valid))).toBe(`409 ${order.conflict}`);
        }
      },
    );

    it('HOST-ORIGIN: a foreign Host or Origin is refused on every route before anything of the request is looked up', async () => {
      const paths = [
        '/api/v1/tasks',
        `/api/v1/clarification/${estate.pendingId}`,
        '/mcp',
        `/mcp/sessions/${estate.sessionId}`,
      ];
      for (const path of paths) {
        for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }]) {
          const response = await fetch(`${app.url}${path}`, {
            method: 'POST',
            headers: { authorization: `Bearer ${tokens.owner}`, 'content-type': 'application/json', ...headers },
            body: '{',
          });
          expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([403, 'forbidden']);
        }
      }
    });
  });
});
