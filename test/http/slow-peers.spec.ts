import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller } from '../support/callers.js';
import { describeEngine } from '../support/engines.js';
import { answersTo, makeEstate } from '../support/estate.js';
import { until } from '../support/until.js';
import { startProbeApp } from './probe-app.js';
import type { ProbeApp } from './probe-app.js';

/** A connection on which the test says what is sent, and when. */
class Peer {
  received = '';
  isClosed = false;

  private constructor(readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => (this.received += chunk.toString('latin1')));
    socket.on('close', () => (this.isClosed = true));
    socket.on('error', () => undefined);
  }

  static async connect(url: string): Promise<Peer> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new Peer(socket);
  }

  send(text: string): this {
    this.socket.write(text);
    return this;
  }

  /** A byte now and then, for as long as somebody takes it. */
  dribble(text: string): this {
    const timer = setInterval(() => this.send(text), 50);
    this.socket.on('close', () => clearInterval(timer));
    return this;
  }

  async closed(): Promise<string> {
    await until(() => this.isClosed);
    return this.received;
  }
}

const HOST = 'Host: localhost\r\n';
const LATE = '{"error":"the request did not arrive in time","code":"validation_failed"}';

describe('SLOW-PEERS: a peer that is slow to send', () => {
  let probe: ProbeApp;
  beforeAll(async () => {
    probe = await startProbeApp({ env: { SLOW_PEER_TIMEOUT_MS: '1500' } });
  });
  afterAll(() => probe.close());

  it.each([
    ['its headers', 'GET /api/v1/probe/list HTTP/1.1\r\nHost: localhost\r\nX-Slow: ', 'x'],
    ['one header after the other', 'GET /api/v1/probe/list HTTP/1.1\r\nHost: localhost\r\n', 'X-Slow: x\r\n'],
    ['its request line', 'GET /', 'x'],
    [
      'its body',
      `POST /api/v1/probe/echo HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"text":"`,
      'x',
    ],
    [
      'its chunks',
      `POST /api/v1/probe/echo HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      '1\r\n \r\n',
    ],
  ])('%s is told so and cut, however regularly it sends', async (_, begun, more) => {
    const calls = probe.probe.calls;
    const answer = await (await Peer.connect(probe.url)).send(begun).dribble(more).closed();
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer.endsWith(LATE)).toBe(true);
    expect(probe.probe.calls).toBe(calls);
  });

  it('anything at all is cut', async () => {
    const silent = await Peer.connect(probe.url);
    await silent.closed();
  });

  it('the body of what has been refused already is cut, with nothing behind the refusal', async () => {
    const head = `POST /api/v1/probe/echo HTTP/1.1\r\n${HOST}Content-Type: text/plain\r\nContent-Length: 100000\r\n\r\n`;
    const answer = await (await Peer.connect(probe.url)).send(head).dribble('x').closed();
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(answer).toMatch(/^HTTP\/1\.1 415 /);
  });

  it('a second request, while the reply to the first is awaited, is cut without a word that could be taken for that reply', async () => {
    const peer = await Peer.connect(probe.url);
    peer.send(`GET /api/v1/probe/hold HTTP/1.1\r\n${HOST}\r\n`);
    await probe.probe.held.opened;
    expect(await peer.dribble('G').closed()).toBe('');
    await probe.probe.gone.opened;
  });

  it('is not one that sends in time, whose next request on the same connection has as long again', async () => {
    const peer = await Peer.connect(probe.url);
    for (let count = 1; count <= 3; count += 1) {
      peer.send(`GET /api/v1/probe/list HTTP/1.1\r\n${HOST}\r\n`);
      await until(() => (peer.received.match(/HTTP\/1\.1 200/g) ?? []).length === count);
      await new Promise((resolve) => setTimeout(resolve, 600));
    }
    peer.socket.destroy();
  });
});

describe('SLOW-PEERS: a reply that is awaited', () => {
  it.each([
    ['nonsense', 'NONSENSE\r\n\r\n'],
    ['a CONNECT', `CONNECT evil.example:443 HTTP/1.1\r\n${HOST}\r\n`],
  ])('is not broken into by an answer to %s that is sent behind its request', async (_, behind) => {
    const probe = await startProbeApp({});
    try {
      const peer = await Peer.connect(probe.url);
      peer.send(`GET /api/v1/probe/hold HTTP/1.1\r\n${HOST}\r\n`);
      await probe.probe.held.opened;
      expect(await peer.send(behind).closed()).toBe('');
      await probe.probe.gone.opened;
    } finally {
      await probe.close();
    }
  });
});

describeEngine('sqlite', 'SLOW-PEERS: what lasts for good reason', (engine) => {
  let app: RunningApp;
  beforeAll(async () => {
    app = await startApp({ url: await engine.createUrl() }, { env: { SLOW_PEER_TIMEOUT_MS: '1500' } });
  });
  afterAll(() => app.close());

  /** Several times what a slow peer is given, and several looks at the connections. */
  const longAfter = () => new Promise((resolve) => setTimeout(resolve, 4_000));

  it('a wait, a mailbox, a stream and a call over MCP go on, in silence, and get their answer', async () => {
    const { pendingId, sessionId } = await makeEstate(new RestCaller(app.url));
    const get = (path: string) => `GET ${path} HTTP/1.1\r\n${HOST}\r\n`;
    const [wait, mailbox, stream] = await Promise.all([1, 2, 3].map(() => Peer.connect(app.url)));
    wait?.send(get(`/api/v1/clarification/${pendingId}/wait?timeout=3600`));
    mailbox?.send(get(`/api/v1/task-sessions/${sessionId}/mailbox?wait=60`));
    stream?.send(get('/api/v1/events'));
    const mcp = await McpCaller.open(app.url, `/mcp/sessions/${sessionId}`);
    const called = mcp.call('wait_for_answer_kandev', { pending_id: pendingId });
    await until(async () => /^held_requests 4$/m.test((await app.http.get('/metrics')).text));
    await longAfter();
    expect([wait?.isClosed, mailbox?.isClosed, stream?.isClosed]).toEqual([false, false, false]);
    await new RestCaller(app.url).make('POST', `/clarification/${pendingId}/respond`, answersTo(['q1']));
    await until(() => /^HTTP\/1\.1 200 [^]*"answers":\[/.test(wait?.received ?? ''));
    await until(() => /clarification\.resolved/.test(stream?.received ?? ''));
    expect((await called).value).toHaveProperty('q1');
    for (const peer of [wait, mailbox, stream]) peer?.socket.destroy();
  });

  it('a peer that takes nothing of what is sent is cut, and one that only waits beside it is not', async () => {
    const rest = new RestCaller(app.url);
    const { sessionId, pendingId } = await makeEstate(rest);
    for (let count = 0; count < 40; count += 1) {
      await rest.make('POST', `/task-sessions/${sessionId}/messages`, { content: `${count} `.padEnd(20_000, 'x') });
    }
    const waiting = await Peer.connect(app.url);
    waiting.send(`GET /api/v1/clarification/${pendingId}/wait?timeout=3600 HTTP/1.1\r\n${HOST}\r\n`);
    const deaf = await Peer.connect(app.url);
    deaf.socket.pause();
    // More than the buffers of the kernels between us take.
    const page = `GET /api/v1/task-sessions/${sessionId}/messages HTTP/1.1\r\n${HOST}\r\n`;
    deaf.send(page.repeat(20));
    const connections = () =>
      new Promise<number>((resolve) => app.app.getHttpServer().getConnections((_: unknown, n: number) => resolve(n)));
    const before = await connections();
    await until(async () => (await connections()) < before);
    expect(waiting.isClosed).toBe(false);
    waiting.socket.destroy();
    deaf.socket.destroy();
  });
});

describe('SLOW-PEERS: connections', () => {
  it('whose peer was refused a CONNECT and leaves its half open are closed, and hold up no shutdown', async () => {
    const probe = await startProbeApp({});
    const { hostname, port } = new URL(probe.url);
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    let received = '';
    socket.on('error', () => undefined).on('data', (chunk: Buffer) => (received += chunk.toString('latin1')));
    socket.write(`CONNECT evil.example:443 HTTP/1.1\r\n${HOST}\r\n`);
    await once(socket, 'end');
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    await probe.close();
    socket.destroy();
  });

  it('beyond their number are closed at once and counted, and those that are open go on', async () => {
    const probe = await startProbeApp({ env: { MAX_CONNECTIONS: '2' } });
    try {
      const peers = [await Peer.connect(probe.url), await Peer.connect(probe.url)];
      expect(await (await Peer.connect(probe.url)).closed()).toBe('');
      expect(await probe.metrics()).toMatch(/^requests_refused_total\{limit="connections"\} 1$/m);
      peers[0]?.send(`GET /health/live HTTP/1.1\r\n${HOST}\r\n`);
      await until(() => /^HTTP\/1\.1 200/.test(peers[0]?.received ?? ''));
      for (const peer of peers) peer.socket.destroy();
    } finally {
      await probe.close();
    }
  });
});
