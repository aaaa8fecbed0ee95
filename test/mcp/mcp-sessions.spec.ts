import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { McpSessions } from '../../src/mcp/sdk/mcp-sessions.js';
import { ANA, as, BEN, INITIALIZE, messagesOf, startEndpoint } from './support/endpoint-server.js';
import type { EndpointServer } from './support/endpoint-server.js';
import { fakeTool, Gate } from './support/fake-tools.js';

let server: EndpointServer;
afterEach(() => server.close());

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const echo = fakeTool('echo', (input) => ({ input }));
const who = fakeTool('who', (_, call) => ({ sessionId: call.sessionId ?? '' }), 'session');

async function open(caller: typeof ANA, path = '/mcp'): Promise<string> {
  const response = await server.post(INITIALIZE, as(caller), path);
  await response.text();
  expect(response.status).toBe(200);
  return response.headers.get('mcp-session-id') ?? '';
}

describe('MCP-SESSION: an MCP session id', () => {
  it('is unguessable and fresh for each client', async () => {
    server = await startEndpoint([echo]);
    const ids = [await open(ANA), await open(ANA)];
    expect(ids[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(ids[0]).not.toBe(ids[1]);
  });

  it('that is unknown, of another identity, of another surface or of another session path gives one and the same 404', async () => {
    server = await startEndpoint([echo, who]);
    const id = await open(ANA);
    const inSession = await open(ANA, '/mcp/sessions/s1');
    const answers = [
      await server.post(LIST, { ...as(ANA), 'mcp-session-id': 'unknown' }),
      await server.post(LIST, { ...as(BEN), 'mcp-session-id': id }),
      await server.post(LIST, { ...as(ANA), 'mcp-session-id': inSession }),
      await server.post(LIST, { ...as(ANA), 'mcp-session-id': id }, '/mcp/sessions/s1'),
      await server.post(LIST, { ...as(ANA), 'mcp-session-id': inSession }, '/mcp/sessions/s2'),
      // An initialize does not help: a client that sends a dead id has to drop it first.
      await server.post(INITIALIZE, { ...as(BEN), 'mcp-session-id': id }),
    ];
    for (const answer of answers) {
      expect([answer.status, await answer.text()]).toEqual([
        404,
        '{"error":"MCP session not found; initialize a new one","code":"not_found"}',
      ]);
    }
    for (const method of ['GET', 'DELETE']) {
      const headers = { ...as(BEN), 'mcp-session-id': id, accept: 'text/event-stream' };
      expect((await fetch(`${server.url}/mcp`, { method, headers })).status).toBe(404);
    }
    expect((await server.post(LIST, { ...as(ANA), 'mcp-session-id': id })).status).toBe(200);
  });

  it('works for every token of the identity that opened it', async () => {
    server = await startEndpoint([echo]);
    const id = await open(ANA);
    const otherToken = { ...ANA, tokenId: 'token-2' };
    expect((await server.post(LIST, { ...as(otherToken), 'mcp-session-id': id })).status).toBe(200);
  });

  it('is ended by DELETE, which frees the calls that are held in it', async () => {
    const gate = new Gate();
    server = await startEndpoint([fakeTool('hold', gate.handler)]);
    const id = await open(ANA);
    const headers = { ...as(ANA), 'mcp-session-id': id };
    const held = server.post({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'hold' } }, headers);
    const { call } = await gate.arrival(0);
    const replied = new Promise((resolve) => call.onReply(resolve));
    expect((await fetch(`${server.url}/mcp`, { method: 'DELETE', headers })).status).toBe(200);
    expect(await messagesOf(await held)).toEqual([]);
    expect(call.signal.aborted).toBe(true);
    expect(await replied).toBe(false);
    expect((await server.post(LIST, headers)).status).toBe(404);
  });

  it('is needed for anything but initialize', async () => {
    server = await startEndpoint([echo]);
    for (const [body, code] of [
      [LIST, -32600],
      [{ hello: 1 }, -32700],
      [[], -32700],
      ['x', -32700],
      [null, -32700],
    ] as const) {
      const answer = await server.post(body, as(ANA));
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code } });
    }
    const stream = await fetch(`${server.url}/mcp`, { headers: { ...as(ANA), accept: 'text/event-stream' } });
    expect(stream.status).toBe(400);
  });

  it('is not made for an initialize that the transport refuses', async () => {
    const sessions = new McpSessions();
    server = await startEndpoint([echo], { sessions });
    expect((await server.post(INITIALIZE, { ...as(ANA), accept: 'application/json' })).status).toBe(406);
    expect(sessions.size).toBe(0);
  });
});

it('MCP-GONE: nothing is begun for a client that left before its request was looked at', async () => {
  const sessions = new McpSessions();
  let calls = 0;
  server = await startEndpoint([fakeTool('count', () => ({ calls: (calls += 1) }))], { sessions });
  const left = async (body: unknown, headers: Record<string, string>, method: 'post' | 'get' = 'post') => {
    const front = createServer();
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    const { port } = front.address() as AddressInfo;
    const request = httpRequest({ port, method, headers }).on('error', () => undefined);
    request.end();
    const [req, res] = (await once(front, 'request')) as [IncomingMessage, ServerResponse];
    request.destroy();
    await once(res, 'close');
    front.close();
    const arrival = {
      surface: 'external',
      caller: ANA,
      deadline: Deadline.after(5_000),
      requestId: 'r',
      holdOpen: () => () => undefined,
    } as const;
    await server.endpoint[method](arrival, req, res, body);
  };
  await left(INITIALIZE, {});
  expect(sessions.size).toBe(0);
  const id = await open(ANA);
  await left({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'count' } }, { 'mcp-session-id': id });
  expect(calls).toBe(0);
  expect(sessions.all().map((session) => session.isCalling)).toEqual([false]);
  await left(undefined, { 'mcp-session-id': id, accept: 'text/event-stream' }, 'get');
  expect(server.watchers()).toBe(0);
});

describe('MCP-SESSION: the number of MCP sessions', () => {
  it('is bounded per owner: the least recently used one without a call under way makes room', async () => {
    const gate = new Gate();
    const sessions = new McpSessions({ perOwner: 2, overall: 100, idleMs: 60_000 });
    server = await startEndpoint([fakeTool('hold', gate.handler)], { sessions });
    const first = await open(ANA);
    const held = server.post(
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'hold' } },
      { ...as(ANA), 'mcp-session-id': first },
    );
    const { open: release } = await gate.arrival(0);
    const second = await open(ANA);
    const ofBen = await open(BEN);
    const third = await open(ANA);
    expect(sessions.size).toBe(3);
    const status = async (caller: typeof ANA, id: string) =>
      (await server.post(LIST, { ...as(caller), 'mcp-session-id': id })).status;
    expect(await status(ANA, second)).toBe(404);
    expect(await status(ANA, third)).toBe(200);
    expect(await status(BEN, ofBen)).toBe(200);
    release({ ok: true });
    expect((await messagesOf(await held)).at(-1)).toMatchObject({ result: { structuredContent: { ok: true } } });
  });

  it('is 429 when each of them has a call under way', async () => {
    const gate = new Gate();
    const sessions = new McpSessions({ perOwner: 100, overall: 1, idleMs: 60_000 });
    server = await startEndpoint([fakeTool('hold', gate.handler)], { sessions });
    const id = await open(ANA);
    const held = server.post(
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'hold' } },
      { ...as(ANA), 'mcp-session-id': id },
    );
    const { open: release } = await gate.arrival(0);
    const refused = await server.post(INITIALIZE, as(BEN));
    expect([refused.status, await refused.json()]).toEqual([
      429,
      { error: 'too many MCP sessions are open; end some, or try again later', code: 'too_many_requests' },
    ]);
    release({});
    await (await held).text();
  });

  it('shrinks when sessions are idle for too long; an open stream keeps one', async () => {
    const sessions = new McpSessions({ perOwner: 100, overall: 100, idleMs: 60_000 });
    server = await startEndpoint([echo], { sessions });
    const idle = await open(ANA);
    const streaming = await open(ANA);
    const headers = { ...as(ANA), 'mcp-session-id': streaming, accept: 'text/event-stream' };
    const stream = await fetch(`${server.url}/mcp`, { headers });
    expect(stream.status).toBe(200);
    await sessions.sweep(performance.now() + 59_000);
    expect(sessions.size).toBe(2);
    await sessions.sweep(performance.now() + 61_000);
    expect(sessions.all().map((session) => session.id)).toEqual([streaming]);
    expect((await server.post(LIST, { ...as(ANA), 'mcp-session-id': idle })).status).toBe(404);
    await stream.body?.cancel();
  });
});

describe('an MCP stream', () => {
  it('ends when the token that opened it does (MCP-REVOKED)', async () => {
    server = await startEndpoint([echo]);
    const id = await open(ANA);
    const headers = { ...as(ANA), 'mcp-session-id': id, accept: 'text/event-stream' };
    const stream = await fetch(`${server.url}/mcp`, { headers });
    server.revoke(ANA);
    expect(await stream.text()).toBe('');
    expect(server.watchers()).toBe(0);
  });

  it('ends at shutdown, after which nothing new is begun', async () => {
    server = await startEndpoint([echo]);
    const id = await open(ANA);
    const headers = { ...as(ANA), 'mcp-session-id': id, accept: 'text/event-stream' };
    const stream = await fetch(`${server.url}/mcp`, { headers });
    await server.stop();
    expect(await stream.text()).toBe('');
    const refused = await server.post(INITIALIZE, as(ANA));
    expect([refused.status, await refused.json()]).toEqual([
      503,
      { error: 'the service is shutting down', code: 'temporarily_unavailable' },
    ]);
  });
});
