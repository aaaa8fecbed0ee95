import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { ContractedRoutes } from '../../src/http/contracted-routes.js';
import { describeEngine } from '../support/engines.js';
import { startApp } from '../support/app.js';
import type { RunningApp } from '../support/app.js';
import { ForgottenController, startProbeApp } from './probe-app.js';

interface Content {
  readonly schema: Record<string, unknown>;
  readonly example?: unknown;
  readonly examples?: Record<string, { readonly value: { readonly code?: string } }>;
}

interface Operation {
  operationId: string;
  summary: string;
  tags: string[];
  security: object[];
  parameters: { name: string; in: string; required: boolean; schema: object; description?: string }[];
  requestBody?: { required: boolean; content: Record<string, Content> };
  responses: Record<string, { description: string; content?: Record<string, Content> }>;
}

interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object>; securitySchemes: object };
}

describeEngine('sqlite', 'DOCS: the documentation of the whole product', (engine) => {
  let running: RunningApp;
  let document: Document;
  beforeAll(async () => {
    running = await startApp({ url: await engine.createUrl() });
    document = (await running.http.get('/docs-json').expect(200)).body as Document;
  });
  afterAll(() => running.close());

  const operations = () =>
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ route: `${method.toUpperCase()} ${path}`, operation })),
    );

  it('is OpenAPI 3.1 and shows every route of chapter 2', () => {
    expect(document.openapi).toBe('3.1.0');
    expect(operations().map(({ route }) => route)).toEqual(
      expect.arrayContaining([
        'POST /api/v1/workspaces',
        'GET /api/v1/workspaces',
        'POST /api/v1/tasks',
        'GET /api/v1/tasks',
        'GET /api/v1/tasks/{id}',
        'DELETE /api/v1/tasks/{id}',
        'POST /api/v1/tasks/{id}/complete',
        'POST /api/v1/tasks/{id}/sessions',
        'POST /api/v1/task-sessions/{id}/agent-token',
        'GET /api/v1/tasks/{id}/task-sessions',
        'GET /api/v1/task-sessions/{id}',
        'PATCH /api/v1/task-sessions/{id}',
        'POST /api/v1/task-sessions/{id}/turns',
        'GET /api/v1/task-sessions/{id}/turns',
        'POST /api/v1/task-sessions/{id}/turns/{turnId}/complete',
        'GET /api/v1/task-sessions/{id}/messages',
        'POST /api/v1/task-sessions/{id}/messages',
        'GET /api/v1/task-sessions/{id}/mailbox',
        'POST /api/v1/task-sessions/{id}/mailbox/{turnId}/ack',
        'POST /api/v1/clarification/request',
        'GET /api/v1/clarification',
        'GET /api/v1/clarification/{id}',
        'GET /api/v1/clarification/{id}/wait',
        'POST /api/v1/clarification/{id}/respond',
        'POST /api/v1/clarification/{id}/cancel',
        'GET /health/live',
        'GET /health/ready',
        'GET /metrics',
        'POST /mcp',
        'POST /mcp/sessions/{sessionId}',
      ]),
    );
  });

  it('shows what the server has, and nothing else', () => {
    const served = running.app.get(ContractedRoutes).all();
    expect(
      operations()
        .map(({ route }) => route)
        .sort(),
    ).toEqual(served.map(({ method, path }) => `${method.toUpperCase()} ${path}`).sort());
  });

  it('gives every operation a unique id, a summary, and a token unless it is open', () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { route, operation } of operations()) {
      expect(operation.summary).not.toBe('');
      expect(operation.security).toEqual(/ \/(health|metrics)/.test(route) ? [] : [{ bearer: [] }]);
    }
  });

  /** Every place where JSON is described, e.g. `POST /api/v1/tasks request` and `GET /api/v1/tasks 200`. */
  const contents = () =>
    operations().flatMap(({ route, operation }) => [
      ...Object.values(operation.requestBody?.content ?? {}).map((content) => ({ at: `${route} request`, content })),
      ...Object.entries(operation.responses).flatMap(([status, { content = {} }]) =>
        Object.values(content).map((each) => ({ at: `${route} ${status}`, content: each })),
      ),
    ]);

  it('is valid OpenAPI to a tool that others made', async () => {
    expect(await problemsOf(document)).toEqual([]);
  });

  it('would not be valid with an undeclared parameter, an example that does not fit, or an unknown member', async () => {
    const broken = structuredClone(document);
    const { get } = broken.paths['/api/v1/clarification/{id}'] ?? {};
    if (get === undefined) throw new Error('there is such a route');
    get.parameters = [];
    Object.assign(get.responses['200']?.content?.['application/json'] ?? {}, { example: { pending_id: 5 } });
    Object.assign(get.responses['404'] ?? {}, { colour: 'red' });
    const rules = (await problemsOf(broken)).map((problem) => problem.split(' ')[0]);
    expect(new Set(rules)).toEqual(new Set(['path-parameters-defined', 'no-invalid-media-type-examples', 'struct']));
  });

  it('shows an example of every request and every success with a body', () => {
    const without = contents().filter(({ content: { example, examples } }) => (example ?? examples) === undefined);
    expect(without.map(({ at }) => at)).toEqual([]);
  });

  it('gives an example of every error code that it says can happen', () => {
    for (const { route, operation } of operations()) {
      const errors = Object.entries(operation.responses).filter(([status]) => Number(status) >= 400);
      expect(errors.length).toBeGreaterThan(3);
      for (const [, { description, content }] of errors) {
        const { schema = {}, examples = {} } = content?.['application/json'] ?? {};
        const schemas = (schema['oneOf'] ?? [schema]) as { $ref?: string }[];
        expect([route, Object.keys(examples)]).toEqual([
          route,
          schemas.map(({ $ref }) => $ref?.replace('#/components/schemas/error_', '') ?? 'protocol_error'),
        ]);
        for (const [code, { value }] of Object.entries(examples)) {
          if (code !== 'protocol_error') expect([route, value.code]).toEqual([route, code]);
        }
        expect(description).not.toBe('');
      }
    }
  });

  it('gives only examples that fit their schema, and schemas that are JSON Schema 2020-12', () => {
    const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
    formats.default(ajv);
    ajv.addSchema({ $id: 'doc', $defs: document.components.schemas });
    for (const { at, content } of contents()) {
      const schema = JSON.parse(
        JSON.stringify(content.schema).replaceAll('#/components/schemas/', 'doc#/$defs/'),
      ) as object;
      const validate = ajv.compile(schema);
      const values = Object.values(content.examples ?? {}).map(({ value }) => value as unknown);
      for (const value of content.example === undefined ? values : [content.example]) {
        expect([at, value, validate(value), validate.errors]).toEqual([at, value, true, null]);
      }
    }
  });

  it('closes every request and JSON response schema', () => {
    for (const { at, content } of contents()) expect([at, openObjects(content.schema)]).toEqual([at, []]);
    expect(openObjects(document.components.schemas)).toEqual([]);
  });

  it('says of every parameter and every field of a request what it is', () => {
    const silent = operations().flatMap(({ route, operation: { parameters, requestBody } }) => [
      ...parameters.filter(({ description = '' }) => description === '').map(({ name }) => `${route} ${name}`),
      ...silentFields(requestBody?.content['application/json']?.schema).map((path) => `${route} body${path}`),
    ]);
    expect(silent).toEqual([]);
  });

  it('serves a page for people, from this server alone', async () => {
    const page = await running.http.get('/docs').expect(200);
    expect(page.headers['content-type']).toContain('text/html');
    expect(page.text).not.toMatch(/(src|href)="https?:/);
    await running.http.get('/docs/swagger-ui-bundle.js').expect(200);
    await running.http.get('/docs/swagger-ui-init.js').expect(200);
  });
});

const RULES: Parameters<typeof createConfig>[0] = {
  extends: ['spec'],
  rules: {
    'no-ambiguous-paths': 'error',
    'no-invalid-media-type-examples': { severity: 'error', allowAdditionalProperties: false },
    'no-invalid-schema-examples': 'error',
    'operation-operationId-unique': 'error',
    'operation-summary': 'error',
    'path-parameters-defined': 'error',
    struct: 'error',
  },
};

async function problemsOf(document: Document): Promise<string[]> {
  const problems = await lintFromString({ source: JSON.stringify(document), config: await createConfig(RULES) });
  return problems.map(({ ruleId, message, location }) => `${ruleId} ${message} at ${location[0]?.pointer ?? ''}`);
}

/** Paths of properties without a description. */
function silentFields(schema: unknown, path = ''): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties = {}, items } = schema as { properties?: Record<string, object>; items?: object };
  return [
    ...Object.entries(properties).flatMap(([name, field]) => [
      ...('description' in field ? [] : [`${path}.${name}`]),
      ...silentFields(field, `${path}.${name}`),
    ]),
    ...silentFields(items, `${path}[]`),
  ];
}

/** Paths of objects with properties that take further ones. */
function openObjects(schema: unknown, path = '$'): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { type, properties, additionalProperties } = schema as Record<string, unknown>;
  const isOpen = type === 'object' && properties !== undefined && additionalProperties !== false;
  return [
    ...(isOpen ? [path] : []),
    ...Object.entries(schema).flatMap(([key, value]) => openObjects(value, `${path}.${key}`)),
  ];
}

describe('the documentation and metrics', () => {
  it('AUTH: are open on loopback without a token, even where authentication is enforced', async () => {
    const probe = await startProbeApp({ env: { AUTH_MODE: 'enforced' } });
    try {
      await probe.http.get('/docs').expect(200);
      await probe.http.get('/docs-json').expect(200);
      const metrics = await probe.http.get('/metrics').expect(200);
      expect(metrics.headers['content-type']).toContain('text/plain');
      expect(metrics.text).toMatch(/^process_resident_memory_bytes \d+$/m);
      await probe.http.get('/docs').set('Host', 'evil.example').expect(403);
    } finally {
      await probe.close();
    }
  });

  it('AUTH: do not exist where they are closed: 401 without a token, 404 with one', async () => {
    const probe = await startProbeApp({ env: { AUTH_MODE: 'enforced', OPEN_METRICS_AND_DOCS: 'false' } });
    try {
      for (const path of ['/docs', '/docs-json', '/metrics', '/docs/swagger-ui-bundle.js']) {
        await probe.http.get(path).expect(401);
        const known = await probe.http.get(path).set('Authorization', 'Bearer user').expect(404);
        expect(known.body).toEqual({ error: 'no such route', code: 'not_found' });
      }
    } finally {
      await probe.close();
    }
  });
});

describe('contracts', () => {
  it('the start fails while a handler has none', async () => {
    await expect(startProbeApp({ controllers: [ForgottenController] })).rejects.toThrow(
      'ForgottenController.show has no @Contract',
    );
  });
});
