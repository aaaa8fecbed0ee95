import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { ContractedRoutes } from '../../src/http/contracted-routes.js';
import { describeEngine } from '../support/engines.js';
import { startApp } from '../support/app.js';
import type { RunningApp } from '../support/app.js';
import { ForgottenController, startProbeApp } from './probe-app.js';

interface Operation {
  operationId: string;
  summary: string;
  security: object[];
  parameters: { name: string; in: string; required: boolean; schema: object }[];
  requestBody?: { required: boolean; content: Record<string, { schema: Record<string, unknown> }> };
  responses: Record<
    string,
    {
      description: string;
      content?: Record<string, { schema: object; examples?: Record<string, { value: { code: string } }> }>;
    }
  >;
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

  it('gives every error code of every operation a closed schema and an example that fits it', () => {
    const ajv = new Ajv2020({ strict: false });
    ajv.addSchema({ $id: 'doc', components: document.components });
    for (const { route, operation } of operations()) {
      const errors = Object.entries(operation.responses).filter(([status]) => Number(status) >= 400);
      expect(errors.length).toBeGreaterThan(3);
      for (const [, { content }] of errors) {
        const { schema, examples = {} } = content?.['application/json'] ?? { schema: {} };
        const resolved = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"doc#/')) as object;
        for (const [code, { value }] of Object.entries(examples)) {
          expect([route, code, value.code, ajv.validate(resolved, value)]).toEqual([route, code, code, true]);
        }
      }
    }
  });

  it('closes every request and JSON response schema', () => {
    for (const { route, operation } of operations()) {
      const bodies = [
        ...(operation.requestBody === undefined ? [] : [operation.requestBody.content['application/json']?.schema]),
        ...Object.entries(operation.responses).flatMap(([status, { content }]) =>
          Number(status) < 300 ? [content?.['application/json']?.schema] : [],
        ),
      ];
      for (const schema of bodies) expect([route, openObjects(schema)]).toEqual([route, []]);
    }
  });

  it('serves a page for people, from this server alone', async () => {
    const page = await running.http.get('/docs').expect(200);
    expect(page.headers['content-type']).toContain('text/html');
    expect(page.text).not.toMatch(/(src|href)="https?:/);
    await running.http.get('/docs/swagger-ui-bundle.js').expect(200);
    await running.http.get('/docs/swagger-ui-init.js').expect(200);
  });
});

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
      expect(metrics.text).toContain('clarification_response_timeout_total{phase="claim"} 0');
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
