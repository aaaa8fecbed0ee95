import fc, { type Arbitrary } from 'fast-check';
import { actorsOf, estatesOf, type ActorWeights, type FuzzCase, type Target } from './cases.js';
import { HINTS, inputsOf } from './hints.js';
import { misspelt, mutated, type Body } from './mutations.js';
import { ODD_SEGMENTS, ODD_TEXTS } from './odd-texts.js';
import { Ref, type RefKind } from './ref.js';
import { valuesOf, type JsonSchema } from './schema-values.js';

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

export interface Operation {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> };
  readonly responses: Readonly<
    Record<string, { readonly headers?: object; readonly content?: Readonly<Record<string, unknown>> }>
  >;
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** What one route needs beyond what the document says. */
export interface RouteHabits {
  readonly bodies?: Arbitrary<unknown>;
  readonly headers?: FuzzCase['headers'];
  readonly actors?: ActorWeights;
}

/** Of what a path names, by the word before it. */
const KIND_AFTER: Readonly<Record<string, RefKind>> = {
  tasks: 'task',
  'task-sessions': 'session',
  sessions: 'session',
  turns: 'turn',
  mailbox: 'turn',
  clarification: 'bundle',
};

const ACTORS: ActorWeights = { owner: 72, agent: 12, 'other user': 8, 'other agent': 3, nobody: 2, 'bad token': 3 };

/** What a success takes away, so that the next case needs another. */
const CONSUMING = /^DELETE |\/(respond|cancel|wait)$/;

/** All routes that the document describes. */
export function routesOf(
  document: OpenApi,
): { readonly method: string; readonly path: string; readonly operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** Cases for one route: most as the document wants them, the others with one thing wrong. */
export function routeTarget(method: string, path: string, operation: Operation, habits: RouteHabits = {}): Target {
  const name = `${method} ${path}`;
  const isOpenEnded = method === 'GET' && operation.responses['200']?.content?.['text/event-stream'] !== undefined;
  const schema = operation.requestBody?.content['application/json']?.schema;
  const inputs = habits.bodies ?? (schema === undefined ? undefined : inputsOf(schema));
  const parameters = operation.parameters?.filter((parameter) => parameter.in === 'query') ?? [];
  const usual: { [K in keyof FuzzCase]: Arbitrary<FuzzCase[K]> } = {
    actor: actorsOf(habits.actors ?? ACTORS),
    estate: estatesOf(CONSUMING.test(name) ? 40 : 8),
    method: fc.constant(method),
    path: fc.constant(partsOf(path)),
    query: queriesOf(parameters),
    headers: fc.constant(habits.headers ?? []),
    body: inputs === undefined ? fc.constant(undefined) : inputs.map((json): Body => ({ json })),
    leavesAfterMs: fc.constant(undefined),
  };
  const withOdd = (odd: Partial<typeof usual>): Arbitrary<FuzzCase> => fc.record({ ...usual, ...odd });
  const oddBodies = inputs ?? fc.constant({});
  const cases = fc.oneof(
    { arbitrary: fc.record(usual), weight: 62 },
    {
      arbitrary: withOdd({ body: mutated(oddBodies).map((json): Body => ({ json })) }),
      weight: inputs === undefined ? 3 : 12,
    },
    { arbitrary: withOdd({ body: misspelt(oddBodies) }), weight: inputs === undefined ? 3 : 6 },
    { arbitrary: withOdd({ path: oddPathsOf(path) }), weight: path.includes('{') ? 8 : 2 },
    { arbitrary: withOdd({ query: oddQueriesOf(parameters) }), weight: parameters.length > 0 ? 10 : 4 },
    { arbitrary: withOdd({ headers: oddHeadersOf(habits.headers ?? []) }), weight: 5 },
    {
      arbitrary: withOdd({ method: fc.constantFrom('HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND') }),
      weight: 1,
    },
    { arbitrary: withOdd({ leavesAfterMs: fc.nat(40) }), weight: 1 },
  );
  return { name, cases, isOpenEnded };
}

function partsOf(path: string): (string | Ref)[] {
  const parts = path.split('/').slice(1);
  return parts.map((part, index) => {
    if (!part.startsWith('{')) return part;
    const kind = KIND_AFTER[parts[index - 1] ?? ''];
    if (kind === undefined) throw new Error(`what does ${part} name in ${path}?`);
    return new Ref(kind);
  });
}

function oddPathsOf(path: string): Arbitrary<FuzzCase['path']> {
  const parts = partsOf(path);
  const refs = parts.flatMap((part, index) => (part instanceof Ref ? [index] : []));
  const elsewhere = fc.constantFrom(
    ...[
      [...parts, ''],
      ['', ...parts],
      [...parts, 'more'],
      parts.map((part) => (part instanceof Ref ? part : part.toUpperCase())),
    ],
    [...parts.slice(0, -1), '.', ...parts.slice(-1)],
    [...parts.slice(0, -1), 'x', '..', ...parts.slice(-1)],
    [...parts, '%00'],
    [...parts, '#'],
  );
  if (refs.length === 0) return elsewhere;
  const odd = fc.oneof(
    { arbitrary: fc.constantFrom<string | Ref>(...ODD_SEGMENTS, ''), weight: 5 },
    {
      arbitrary: fc
        .constantFrom('own', 'other', 'deleted', 'sibling')
        .chain((whose) =>
          fc
            .constantFrom<RefKind>('task', 'session', 'turn', 'bundle', 'workspace')
            .map((kind) => new Ref(kind, whose)),
        ),
      weight: 5,
    },
    fc
      .string({ unit: 'binary', maxLength: 20 })
      .map((text) => Buffer.from(text).reduce((all, byte) => `${all}%${byte.toString(16).padStart(2, '0')}`, '')),
  );
  const oneOdd = fc
    .tuple(fc.constantFrom(...refs), odd)
    .map(([at, part]) => parts.map((old, index) => (index === at ? part : old)));
  return fc.oneof({ arbitrary: oneOdd, weight: 9 }, elsewhere);
}

function queriesOf(parameters: readonly Parameter[]): Arbitrary<FuzzCase['query']> {
  const schema: JsonSchema = {
    type: 'object',
    properties: Object.fromEntries(parameters.map((parameter) => [parameter.name, parameter.schema])),
    required: parameters.filter((parameter) => parameter.required === true).map((parameter) => parameter.name),
  };
  return valuesOf(schema, HINTS).map((values) => Object.entries(values as object));
}

function oddQueriesOf(parameters: readonly Parameter[]): Arbitrary<FuzzCase['query']> {
  const names = fc.constantFrom(...parameters.map(({ name }) => name), 'unknown', '__proto__', 'constructor', '');
  const texts = fc.oneof(
    fc.constantFrom('', '1', '-1', '0', '1.5', '1e3', '01', '+1', '0x1', ' 1', '9'.repeat(400), 'null', 'true', '[]'),
    fc.constantFrom(...ODD_TEXTS),
    fc.string({ unit: 'binary', maxLength: 20 }),
  );
  const spelt = fc
    .tuple(
      names,
      fc.constantFrom(
        (name: string) => `${name}=1&${name}=2`,
        (name: string) => `${name}[]=1`,
        (name: string) => `${name}[a]=1`,
        (name: string) => `${name}.a=1`,
        (name: string) => `${name}=%ZZ`,
        (name: string) => `${name}=%FF`,
        (name: string) => `${name}=%00`,
        (name: string) => `${name}=%ED%A0%80`,
        (name: string) => `${name}=%uD800`,
        (name: string) => `${name}=\u00e9\u00ff`,
        (name: string) => `${name.toUpperCase()}=1`,
        (name: string) => `${name}`,
        (name: string) => `${name}=1;${name}=2`,
        (name: string) => `&&=&${name}=`,
        (name: string) => `?${name}=1`,
        (name: string) => `${name}=1#fragment`,
        (name: string) => `${name}=${'a'.repeat(9_000)}`,
        (name: string) => Array.from({ length: 800 }, (_, index) => `${name}${index}=`).join('&'),
      ),
    )
    .map(([name, spell]) => spell(name));
  return fc.oneof(spelt, fc.array(fc.tuple(names, texts), { minLength: 1, maxLength: 4 }));
}

const EVENT_IDS = [
  '',
  '0',
  '-1',
  '1-1',
  '1-0',
  '999999999-1',
  '1-999999999999999999999',
  'x',
  '1-1-1',
  '\u00ff',
  '9'.repeat(5_000),
];

function oddHeadersOf(usual: FuzzCase['headers']): Arbitrary<FuzzCase['headers']> {
  const of = (name: string, ...values: readonly (string | Ref)[]) =>
    values.map((value): [string, string | Ref] => [name, value]);
  const odd = fc.constantFrom<readonly [string, string | Ref]>(
    ...of(
      'content-type',
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/json; charset=utf-16',
      'application/json; charset="utf-8"',
      'APPLICATION/JSON',
      'application/json;',
      'application/vnd.api+json',
      '',
      ';;;',
      '\u00ff',
      'application/json, text/plain',
    ),
    ...of('content-encoding', 'gzip', 'br', 'identity', 'x'),
    ...of('accept', '', '*/*', 'text/html', 'application/json', 'text/event-stream', ';q=', 'x'.repeat(3_000)),
    ...of('accept-encoding', 'gzip', '*', 'identity;q=0, *;q=0'),
    ...of(
      'authorization',
      '',
      'Bearer',
      'Bearer ',
      'bearer x',
      'Basic YTpi',
      'Bearer a b',
      `Bearer ${'a'.repeat(5_000)}`,
      'Bearer \u00ff',
      `Bearer clu_${'A'.repeat(43)}`,
      `Bearer cla_${'_'.repeat(43)}`,
      'Token x',
    ),
    ...of(
      'host',
      'evil.example',
      'localhost',
      '127.0.0.1',
      '[::1]',
      '127.0.0.1:1',
      '127.0.0.1.evil.example',
      '\u00ff',
      'a'.repeat(300),
      '127.0.0.1@evil.example',
    ),
    ...of('origin', 'null', 'http://evil.example', 'https://127.0.0.1', 'file://', 'x', ''),
    ...of('last-event-id', ...EVENT_IDS),
    ...of(
      'mcp-session-id',
      '',
      'x',
      '00000000-0000-0000-0000-000000000000',
      '\u00ff',
      'x'.repeat(5_000),
      new Ref('mcp session', 'other'),
    ),
    ...of('mcp-protocol-version', '', '2024-11-05', '2025-03-26', '1999-01-01', '\u00ff', 'x'.repeat(1_000)),
    ...of('expect', '100-continue', 'nonsense'),
    ...of('upgrade', 'websocket', 'h2c'),
    ...of('cookie', 'a=b', '\u00ff'),
    ...of('x-forwarded-for', '1.2.3.4', 'x, y', '::'),
    ...of('x-forwarded-host', 'evil.example'),
    ...of('x-http-method-override', 'DELETE', 'x'),
    ...of('x-request-id', 'mine', '\u00ff'),
    ...of('if-none-match', '*', '"x"'),
    ...of('if-modified-since', 'Thu, 01 Jan 2099 00:00:00 GMT'),
    ...of('range', 'bytes=0-1', 'bytes=-'),
    ...of('access-control-request-method', 'DELETE'),
    ...of('__proto__', 'x'),
    ...of('constructor', 'x'),
    ...of('x-large', 'x'.repeat(12_000), 'x'.repeat(40_000)),
  );
  const replaced = odd.map(([name, value]): FuzzCase['headers'] => [
    ...usual.filter(([old]) => old !== name),
    [name, value],
  ]);
  const lost = fc.nat().map((at) => usual.filter((_, index) => index !== at % Math.max(1, usual.length)));
  const twice = odd.map(([name, value]): FuzzCase['headers'] => [...usual, [name, value], [name, 'x']]);
  const many = fc
    .constant(Array.from({ length: 300 }, (_, index): [string, string] => [`x-many-${index}`, 'x']))
    .map((headers) => [...usual, ...headers]);
  return fc.oneof({ arbitrary: replaced, weight: 8 }, twice, { arbitrary: lost, weight: 2 }, many);
}
