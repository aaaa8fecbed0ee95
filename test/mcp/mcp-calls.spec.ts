import { afterEach, describe, expect, it } from '@jest/globals';
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js';
import { CallerGoneError } from '../../src/common/deadline.js';
import * as errors from '../../src/common/domain-error.js';
import type { ToolCall } from '../../src/mcp/tools/tool.js';
import { ANA, as, BEN, INITIALIZE, messagesOf, startEndpoint } from './support/endpoint-server.js';
import type { EndpointServer } from './support/endpoint-server.js';
import { fakeTool, Gate } from './support/fake-tools.js';

let server: EndpointServer;
afterEach(() => server.close());

/** The headers of a raw client that has initialised. */
async function initialised(protocolVersion = '2025-11-25'): Promise<Record<string, string>> {
  const initialize = { ...INITIALIZE, params: { ...INITIALIZE.params, protocolVersion } };
  const response = await server.post(initialize, as(ANA));
  await response.text();
  return { ...as(ANA), 'mcp-session-id': response.headers.get('mcp-session-id') ?? '' };
}

function callOf(name: string, id: number | string, args?: unknown): object {
  return {
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, ...(args === undefined ? {} : { arguments: args }) },
  };
}

function replyOf(call: ToolCall): Promise<boolean> {
  return new Promise((resolve) => call.onReply(resolve));
}

function aborted(call: ToolCall): Promise<unknown> {
  return new Promise((resolve) => {
    if (call.signal.aborted) resolve(call.signal.reason);
    else call.signal.addEventListener('abort', () => resolve(call.signal.reason));
  });
}

describe('a tool call', () => {
  it('returns its result as structured content and the same JSON as text (MCP-TOOLS)', async () => {
    server = await startEndpoint([fakeTool('echo', (input) => ({ input, list: [], text: '' }))]);
    const client = await server.connect();
    expect(await client.callTool({ name: 'echo', arguments: { a: 1 } })).toEqual({
      content: [{ type: 'text', text: '{"input":{"a":1},"list":[],"text":""}' }],
      structuredContent: { input: { a: 1 }, list: [], text: '' },
    });
  });

  it('gets its arguments exactly as they were sent, keys such as __proto__ included', async () => {
    server = await startEndpoint([fakeTool('keys', (input: object) => ({ keys: Object.keys(input) }))]);
    const headers = await initialised();
    const body = JSON.stringify(callOf('keys', 1, {})).replace('"arguments":{}', '"arguments":{"__proto__":1,"b":2}');
    const response = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body,
    });
    expect(await messagesOf(response)).toMatchObject([{ result: { structuredContent: { keys: ['__proto__', 'b'] } } }]);
  });

  it('of an unknown tool, or of one of the other surface, is a JSON-RPC error (MCP-ERRORS)', async () => {
    server = await startEndpoint([fakeTool('inner', () => ({}), 'session')]);
    const client = await server.connect();
    await expect(client.callTool({ name: 'inner' })).rejects.toMatchObject({ code: -32602 });
    await expect(client.callTool({ name: 'x'.repeat(1000) })).rejects.toThrow(`unknown tool "${'x'.repeat(64)}"`);
    const inner = await server.connect('/mcp/sessions/s1');
    expect(await inner.callTool({ name: 'inner' })).toMatchObject({ structuredContent: {} });
  });

  it('with arguments that are no object, and any malformed message, is a JSON-RPC error', async () => {
    server = await startEndpoint([fakeTool('echo', () => ({}))]);
    const headers = await initialised();
    for (const args of ['text', 5, [1], null]) {
      const [message] = await messagesOf(await server.post(callOf('echo', 1, args), headers));
      expect(message).toMatchObject({ id: 1, error: { code: -32602 } });
    }
    for (const body of [{ hello: 1 }, 5, null, [{}]]) {
      const response = await server.post(body, headers);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { code: -32700 } });
    }
    const [unknown] = await messagesOf(await server.post({ jsonrpc: '2.0', id: 2, method: 'nothing' }, headers));
    expect(unknown).toMatchObject({ id: 2, error: { code: -32601 } });
  });

  it.each([
    { method: 'tools/list', params: { cursor: 5 } },
    { method: 'initialize', params: { ...INITIALIZE.params, protocolVersion: undefined } },
    { method: 'initialize', params: {} },
  ])('MCP-ERRORS: $method with $params does not fit, which is the fault of its sender', async ({ method, params }) => {
    server = await startEndpoint([fakeTool('echo', () => ({}))]);
    const [message] = await messagesOf(
      await server.post({ jsonrpc: '2.0', id: 1, method, params }, await initialised()),
    );
    expect(message).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32602, message: expect.stringContaining(`the parameters do not fit ${method}`) as unknown },
    });
  });

  it('whose client wants a task made of it is answered as any other, because we offer no tasks (MCP-TOOLS)', async () => {
    server = await startEndpoint([fakeTool('echo', (input) => ({ input }))]);
    const headers = await initialised();
    for (const task of [{ ttl: 1 }, {}, 5]) {
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { a: 1 }, task } };
      const [message] = await messagesOf(await server.post(call, headers));
      expect(message).toMatchObject({ id: 1, result: { structuredContent: { input: { a: 1 } } } });
    }
  });

  it('is refused when its id is in use, so that no reply can reach the wrong request', async () => {
    const gate = new Gate();
    server = await startEndpoint([fakeTool('hold', gate.handler)]);
    const headers = await initialised();
    const held = server.post(callOf('hold', 5), headers);
    const { open } = await gate.arrival(0);
    for (const body of [
      callOf('hold', 5),
      { jsonrpc: '2.0', id: 5, method: 'ping' },
      [callOf('hold', 6), callOf('hold', 6)],
    ]) {
      const refused = await server.post(body, headers);
      expect([refused.status, await refused.json()]).toEqual([
        400,
        { jsonrpc: '2.0', error: { code: -32600, message: 'this request id is already in use' }, id: null },
      ]);
    }
    open({ first: true });
    expect(await messagesOf(await held)).toMatchObject([{ id: 5, result: { structuredContent: { first: true } } }]);
    const again = server.post(callOf('hold', 5), headers);
    (await gate.arrival(1)).open({ second: true });
    expect(await messagesOf(await again)).toMatchObject([{ id: 5, result: { structuredContent: { second: true } } }]);
  });

  it('works for every protocol revision that the SDK speaks, batches of 2025-03-26 included', async () => {
    server = await startEndpoint([fakeTool('echo', (input) => input)]);
    for (const version of SUPPORTED_PROTOCOL_VERSIONS) {
      const headers = await initialised(version);
      const [message] = await messagesOf(
        await server.post(callOf('echo', 1, { version }), { ...headers, 'mcp-protocol-version': version }),
      );
      expect(message).toMatchObject({ result: { structuredContent: { version } } });
    }
    const headers = await initialised('2025-03-26');
    const batch = await messagesOf(
      await server.post([callOf('echo', 1, { n: 1 }), callOf('echo', 'b', { n: 2 })], headers),
    );
    expect(batch.map((message) => [message.id, message.result?.structuredContent?.['n']])).toEqual([
      [1, 1],
      ['b', 2],
    ]);
  });

  it('of two concurrent clients with the same request ids gets its own result', async () => {
    const gate = new Gate();
    server = await startEndpoint([fakeTool('hold', gate.handler)]);
    const [ana, ben] = [await server.connect('/mcp', as(ANA)), await server.connect('/mcp', as(BEN))];
    const calls = Array.from({ length: 40 }, (_, n) =>
      (n % 2 === 0 ? ana : ben).callTool({ name: 'hold', arguments: { n } }),
    );
    const arrivals = await Promise.all(calls.map((_, n) => gate.arrival(n)));
    for (const { input, call, open } of arrivals.reverse()) open({ ...input, caller: call.caller });
    const results = await Promise.all(calls);
    expect(results.map((result) => result.structuredContent)).toEqual(
      Array.from({ length: 40 }, (_, n) => ({ n, caller: n % 2 === 0 ? ANA : BEN })),
    );
  });
});

describe('MCP-ERRORS, ERRORS: a failed tool call', () => {
  const failures: [Error, string][] = [
    [new errors.UnauthorizedError('who?'), 'unauthorized: who?'],
    [new errors.ForbiddenError('not you'), 'forbidden: not you'],
    [new errors.NotFoundError('clarification request not found'), 'not_found: clarification request not found'],
    [
      new errors.ValidationError('answers[0].question_id', 'is required'),
      'validation_failed: answers[0].question_id is required',
    ],
    [
      new errors.NotActiveError('clarification request is no longer active'),
      'not_active: clarification request is no longer active',
    ],
    [new errors.ConflictError('session is completed'), 'conflict: session is completed'],
    [new errors.PayloadTooLargeError('too big'), 'payload_too_large: too big'],
    [new errors.UnsupportedMediaTypeError('json only'), 'unsupported_media_type: json only'],
    [new errors.TooManyRequestsError('slow down', 3), 'too_many_requests: slow down'],
    [new errors.TemporarilyUnavailableError('again, please'), 'temporarily_unavailable: again, please'],
    [new errors.WaitTimeoutError('no answer yet'), 'wait_timeout: no answer yet'],
    [
      new errors.InternalError('the answer could not be handed over', { retryable: true }),
      'internal: the answer could not be handed over (request_id: request-1, retryable: true)',
    ],
    [
      new TypeError('SELECT secret FROM users WHERE token = 42'),
      'internal: something went wrong on our side (request_id: request-1)',
    ],
  ];

  it('is a result with isError, the code and the sentence as text, and no structured content', async () => {
    server = await startEndpoint(failures.map(([error], n) => fakeTool(`fail${n}`, () => Promise.reject(error))));
    const client = await server.connect();
    for (const [n, [, text]] of failures.entries()) {
      expect(await client.callTool({ name: `fail${n}` })).toEqual({ content: [{ type: 'text', text }], isError: true });
    }
    expect(failures.flatMap(([error]) => (error instanceof errors.DomainError ? [error.code] : []))).toEqual([
      ...errors.DOMAIN_ERROR_CODES,
    ]);
  });

  it('is logged once when it is our fault, with its request id, and not otherwise (ERROR-INTERNAL)', async () => {
    const logged: unknown[] = [];
    const log = { error: (event: string, fields?: object) => void logged.push([event, fields]) };
    const tools = [
      fakeTool('broken', () => Promise.reject(new TypeError('no such thing'))),
      fakeTool('refused', () => Promise.reject(new errors.NotFoundError('not found'))),
      fakeTool('gone', () => Promise.reject(new CallerGoneError())),
    ];
    server = await startEndpoint(tools, { log });
    const client = await server.connect();
    for (const name of ['broken', 'refused', 'gone']) await client.callTool({ name });
    expect(logged).toEqual([
      ['mcp.tool_failed', { tool: 'broken', request_id: 'request-1', error: new TypeError('no such thing') }],
    ]);
  });
});

describe('a held tool call', () => {
  it('sends its headers at once, then comments that keep proxies from closing the connection (MCP-STREAM)', async () => {
    const gate = new Gate();
    server = await startEndpoint([fakeTool('hold', gate.handler)], { keepAliveMs: 5 });
    const response = await server.post(callOf('hold', 1), await initialised());
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    expect(response.headers.get('cache-control')).toContain('no-cache');
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toMatch(/^: keepalive\n\n/);
    (await gate.arrival(0)).open({});
    while (!(await reader.read()).done);
  });

  it('ends at once when its connection is dropped, and the session goes on (MCP-GONE)', async () => {
    const gate = new Gate();
    server = await startEndpoint([fakeTool('hold', gate.handler), fakeTool('echo', (input) => input)]);
    const headers = await initialised();
    const connection = new AbortController();
    await server.post(callOf('hold', 1), headers, '/mcp', connection.signal);
    const { call } = await gate.arrival(0);
    const replied = replyOf(call);
    connection.abort();
    expect(await aborted(call)).toBeInstanceOf(CallerGoneError);
    expect(await replied).toBe(false);
    expect(await messagesOf(await server.post(callOf('echo', 1, { a: 1 }), headers))).toMatchObject([
      { id: 1, result: { structuredContent: { a: 1 } } },
    ]);
    expect(server.watchers()).toBe(0);
  });

  it.each([0, 1, 'text'])(
    'ends at once, and without a reply, when the client cancels request %p (MCP-GONE)',
    async (id) => {
      const gate = new Gate();
      server = await startEndpoint([fakeTool('hold', gate.handler)]);
      const headers = await initialised();
      const held = server.post(callOf('hold', id), headers);
      const { call } = await gate.arrival(0);
      const replied = replyOf(call);
      const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } };
      expect((await server.post(cancel, headers)).status).toBe(202);
      expect(await aborted(call)).toBeInstanceOf(CallerGoneError);
      expect(await replied).toBe(false);
      expect(await messagesOf(await held)).toEqual([]);
    },
  );

  it('that a client cancels leaves the others of its batch alone', async () => {
    const gate = new Gate();
    server = await startEndpoint([fakeTool('hold', gate.handler)]);
    const headers = await initialised('2025-03-26');
    const held = server.post([callOf('hold', 1), callOf('hold', 2)], headers);
    const [first, second] = [await gate.arrival(0), await gate.arrival(1)];
    await server.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }, headers);
    await aborted(first.call);
    expect(second.call.signal.aborted).toBe(false);
    second.open({ ok: true });
    const messages = await messagesOf(await held);
    expect(messages.find((message) => message.id === 2)).toMatchObject({ result: { structuredContent: { ok: true } } });
  });

  it('may end by itself when the service stops, before it is ended', async () => {
    const gate = new Gate();
    server = await startEndpoint([fakeTool('hold', gate.handler)], { shutdownPatienceMs: 60_000 });
    const client = await server.connect();
    const held = client.callTool({ name: 'hold' });
    const { call, open } = await gate.arrival(0);
    const stopped = server.stop();
    expect(call.signal.aborted).toBe(false);
    open({ ok: true });
    expect(await held).toMatchObject({ structuredContent: { ok: true } });
    await stopped;
  });

  it('tells whether its reply was written out', async () => {
    const gate = new Gate();
    server = await startEndpoint([fakeTool('hold', gate.handler)]);
    const client = await server.connect();
    const held = client.callTool({ name: 'hold' });
    const { call, open } = await gate.arrival(0);
    const replied = replyOf(call);
    open({ ok: true });
    await held;
    expect(await replied).toBe(true);
  });

  it('ends with an error when the token of its caller does; calls of other tokens go on (MCP-REVOKED)', async () => {
    const gate = new Gate();
    server = await startEndpoint([fakeTool('hold', gate.handler)]);
    const [ana, ben] = [await server.connect('/mcp', as(ANA)), await server.connect('/mcp', as(BEN))];
    const ended = ana.callTool({ name: 'hold' });
    await gate.arrival(0);
    const other = ben.callTool({ name: 'hold' });
    const { open } = await gate.arrival(1);
    server.revoke(ANA);
    expect(await ended).toEqual({
      content: [{ type: 'text', text: 'unauthorized: the access token is no longer valid' }],
      isError: true,
    });
    open({ ok: true });
    expect(await other).toMatchObject({ structuredContent: { ok: true } });
  });
});
