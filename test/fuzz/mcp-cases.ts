import fc, { type Arbitrary } from 'fast-check';
import { actorsOf, estatesOf, type ActorWeights, type FuzzCase, type Target } from './cases.js';
import { inputsOf } from './hints.js';
import { misspelt, mutated, type Body } from './mutations.js';
import { Ref } from './ref.js';
import type { RouteHabits } from './rest-cases.js';
import type { JsonSchema } from './schema-values.js';

export type Surface = 'external' | 'session';

/** A tool as a client sees it. */
export interface PublishedTool {
  readonly name: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: object;
}

export const PROTOCOL_VERSION = '2025-11-25';
export const MCP_HEADERS: readonly (readonly [string, string])[] = [
  ['accept', 'application/json, text/event-stream'],
  ['content-type', 'application/json'],
];

const PATHS: Readonly<Record<Surface, FuzzCase['path']>> = {
  external: ['mcp'],
  session: ['mcp', 'sessions', new Ref('session')],
};

const ACTORS: Readonly<Record<Surface, ActorWeights>> = {
  external: { owner: 88, agent: 3, 'other user': 5, nobody: 2, 'bad token': 2 },
  session: { agent: 88, owner: 3, 'other agent': 5, nobody: 2, 'bad token': 2 },
};

/** For the routes that carry MCP, on which the document has no more than that they do. */
export function mcpHabits(
  method: string,
  path: string,
  tools: Readonly<Record<Surface, readonly PublishedTool[]>>,
): RouteHabits {
  const surface: Surface = path.includes('{') ? 'session' : 'external';
  const session = new Ref(method === 'DELETE' ? 'new mcp session' : 'mcp session');
  const headers: FuzzCase['headers'] = [...MCP_HEADERS, ['mcp-session-id', session]];
  const actors = ACTORS[surface];
  return method === 'POST' ? { headers, actors, bodies: messages(tools[surface]) } : { headers, actors };
}

/** Cases for one tool. */
export function toolTarget(surface: Surface, tool: PublishedTool): Target {
  const inputs = inputsOf(tool.inputSchema);
  const call = (args: Arbitrary<unknown>): Arbitrary<unknown> =>
    fc.tuple(args, metas).map(([input, meta]) => ({
      jsonrpc: '2.0',
      id: new Ref('request id'),
      method: 'tools/call',
      params: { name: tool.name, arguments: input, ...meta },
    }));
  const asBody = (json: unknown): Body => ({ json });
  const bodies = fc.oneof(
    { arbitrary: call(inputs).map(asBody), weight: 70 },
    { arbitrary: call(mutated(inputs)).map(asBody), weight: 25 },
    { arbitrary: misspelt(call(inputs)), weight: 5 },
  );
  const cases = fc.record<FuzzCase>({
    actor: actorsOf(ACTORS[surface]),
    estate: estatesOf(/answer|wait|ask/.test(tool.name) ? 30 : 8),
    method: fc.constant('POST'),
    path: fc.constant(PATHS[surface]),
    query: fc.constant([]),
    headers: fc.constant([...MCP_HEADERS, ['mcp-session-id', new Ref('mcp session')]]),
    body: bodies,
    leavesAfterMs: fc.oneof({ arbitrary: fc.constant(undefined), weight: 49 }, fc.nat(40)),
  });
  return { name: tool.name, cases, tool: tool.name, isOpenEnded: false };
}

/** Progress is asked for with a token, which may be any text or number. */
const metas: Arbitrary<object> = fc.oneof(
  { arbitrary: fc.constant({}), weight: 8 },
  fc.constantFrom<object>(
    { _meta: { progressToken: 'p' } },
    { _meta: { progressToken: 0 } },
    { _meta: { progressToken: '' } },
    { _meta: {} },
    { _meta: { other: [1] } },
  ),
);

const IDS: readonly unknown[] = [
  new Ref('request id'),
  new Ref('request id'),
  new Ref('request id'),
  'x',
  '',
  0,
  -1,
  1.5,
  null,
  2 ** 60,
];

/** JSON-RPC of every kind that MCP has, and of some that it has not. */
function messages(tools: readonly PublishedTool[]): Arbitrary<unknown> {
  const names = tools.map(({ name }) => name);
  const methods: Arbitrary<readonly [string, unknown]> = fc.oneof(
    { arbitrary: fc.constant(['ping', undefined] as const), weight: 3 },
    { arbitrary: fc.constant(['tools/list', {}] as const), weight: 3 },
    {
      arbitrary: fc
        .tuple(fc.constantFrom(...names, 'no_such_tool', '__proto__', 'constructor', ''), fc.jsonValue({ maxDepth: 2 }))
        .map(([name, args]) => ['tools/call', { name, arguments: args }] as const),
      weight: 3,
    },
    fc.constant([
      'initialize',
      { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: 'fuzz', version: '0' } },
    ] as const),
    fc.constantFrom<readonly [string, unknown]>(
      ['tools/list', { cursor: 'x' }],
      ['tools/call', {}],
      ['tools/call', undefined],
      ['tools/call', { name: names[0], arguments: {}, task: { ttl: 1 } }],
      ['resources/list', {}],
      ['prompts/get', { name: 'x' }],
      ['completion/complete', {}],
      ['logging/setLevel', { level: 'debug' }],
      ['sampling/createMessage', {}],
      ['tasks/list', {}],
      ['no/such/method', {}],
      ['', {}],
      ['__proto__', {}],
      ['ping', []],
      ['ping', { _meta: { progressToken: {} } }],
    ),
  );
  const requests = fc
    .tuple(methods, fc.constantFrom(...IDS))
    .map(([[method, params], id]) => ({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }));
  const notifications = fc.constantFrom<unknown>(
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: {} } },
    { jsonrpc: '2.0', method: 'notifications/cancelled' },
    { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } },
    { jsonrpc: '2.0', method: 'notifications/nothing' },
    { jsonrpc: '2.0', id: 7, result: {} },
    { jsonrpc: '2.0', id: 7, error: { code: 1, message: 'x' } },
  );
  const one = fc.oneof({ arbitrary: requests, weight: 8 }, { arbitrary: notifications, weight: 2 });
  return fc.oneof({ arbitrary: one, weight: 9 }, fc.array(one, { maxLength: 4 }));
}
