import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startProbeApp } from './probe-app.js';
import type { ProbeApp } from './probe-app.js';
import { sendRaw } from './raw-request.js';

const BASE = '/api/v1/probe';
const CLOSE = 'Connection: close\r\n';

describe('the whole request line and headers', () => {
  let probe: ProbeApp;
  beforeAll(async () => {
    probe = await startProbeApp({
      env: { ALLOWED_HOSTS: 'clarion.example', CORS_ORIGINS: 'https://inbox.example', TRUST_PROXY: '1' },
    });
  });
  afterAll(() => probe.close());

  const hosts = 'this Host is not allowed; the operator can add it to ALLOWED_HOSTS';
  const origins = 'this Origin is not allowed; the operator can add it to CORS_ORIGINS';
  const list = `GET ${BASE}/list HTTP/1.1\r\n`;
  const post = `POST ${BASE}/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;

  it.each([
    // Host
    ['no Host', list, 403, 'forbidden', hosts],
    ['an empty Host', `${list}Host:\r\n`, 403, 'forbidden', hosts],
    [
      'two Hosts',
      `${list}Host: localhost\r\nHost: evil.example\r\n`,
      400,
      'validation_failed',
      'Host must be given once',
    ],
    [
      'two Hosts in capitals',
      `${list}Host: localhost\r\nHOST: localhost\r\n`,
      400,
      'validation_failed',
      'Host must be given once',
    ],
    ['a Host with a user', `${list}Host: localhost@evil.example\r\n`, 403, 'forbidden', hosts],
    ['a Host with a user before a port', `${list}Host: evil.example@localhost:80\r\n`, 403, 'forbidden', hosts],
    ['a Host with a path', `${list}Host: evil.example/localhost\r\n`, 403, 'forbidden', hosts],
    ['a Host that goes on', `${list}Host: localhost, evil.example\r\n`, 403, 'forbidden', hosts],
    ['an IPv4 address in IPv6', `${list}Host: [::ffff:10.0.0.1]\r\n`, 403, 'forbidden', hosts],
    ['a forwarded Host', `${list}Host: evil.example\r\nX-Forwarded-Host: localhost\r\n`, 403, 'forbidden', hosts],
    ['a Forwarded Host', `${list}Host: evil.example\r\nForwarded: host=localhost\r\n`, 403, 'forbidden', hosts],
    // Request target
    [
      'another absolute target',
      `GET http://evil.example${BASE}/list HTTP/1.1\r\nHost: localhost\r\n`,
      403,
      'forbidden',
      hosts,
    ],
    [
      'another target with a user',
      `GET http://localhost@evil.example${BASE}/list HTTP/1.1\r\nHost: localhost\r\n`,
      403,
      'forbidden',
      hosts,
    ],
    ['the asterisk', 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n', 404, 'not_found', 'no such route'],
    [
      'two slashes',
      `GET //evil.example${BASE}/list HTTP/1.1\r\nHost: localhost\r\n`,
      404,
      'not_found',
      'no such route',
    ],
    [
      'a proxy',
      'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n',
      400,
      'validation_failed',
      'this is not a proxy',
    ],
    [
      'a trace',
      `TRACE ${BASE}/list HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer user\r\n`,
      404,
      'not_found',
      'no such route',
    ],
    // Origin
    ['the Origin null', `${list}Host: localhost\r\nOrigin: null\r\n`, 403, 'forbidden', origins],
    [
      'two Origins',
      `${list}Host: localhost\r\nOrigin: https://inbox.example\r\nOrigin: https://evil.example\r\n`,
      403,
      'forbidden',
      origins,
    ],
    [
      'an Origin with a path',
      `${list}Host: localhost\r\nOrigin: https://inbox.example/x\r\n`,
      403,
      'forbidden',
      origins,
    ],
    [
      'an Origin of another port',
      `${list}Host: localhost:3000\r\nOrigin: http://localhost:3001\r\n`,
      403,
      'forbidden',
      origins,
    ],
    [
      'an Origin with a user',
      `${list}Host: localhost\r\nOrigin: http://evil.example@localhost.evil.example\r\n`,
      403,
      'forbidden',
      origins,
    ],
    ['an empty Origin', `${list}Host: localhost\r\nOrigin:\r\n`, 403, 'forbidden', origins],
    // Method
    [
      'a method in a header',
      `${post}X-HTTP-Method-Override: GET\r\nContent-Length: 1\r\n\r\n{`,
      400,
      'validation_failed',
      'body must be JSON',
    ],
    [
      'a method of nobody’s',
      `FETCH ${BASE}/list HTTP/1.1\r\nHost: localhost\r\n`,
      400,
      'validation_failed',
      'this is not an HTTP request',
    ],
    // Framing
    [
      'both framings',
      `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      'validation_failed',
      'this is not an HTTP request',
    ],
    [
      'two lengths',
      `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
      400,
      'validation_failed',
      'this is not an HTTP request',
    ],
    [
      'another framing',
      `${post}Transfer-Encoding: identity, chunked\r\nContent-Length: 2\r\n\r\n{}`,
      400,
      'validation_failed',
      'this is not an HTTP request',
    ],
    [
      'a header without a name',
      `${list}Host: localhost\r\n: x\r\n`,
      400,
      'validation_failed',
      'this is not an HTTP request',
    ],
    [
      'a space before the colon',
      `${list}Host : localhost\r\n`,
      400,
      'validation_failed',
      'this is not an HTTP request',
    ],
    [
      'U+0000 in a header',
      `${list}Host: localhost\r\nX: \0\r\n`,
      400,
      'validation_failed',
      'this is not an HTTP request',
    ],
    // Size
    [
      'a long path',
      `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n`,
      413,
      'payload_too_large',
      'the path and headers of the request are too large',
    ],
    [
      'a long header',
      `${list}Host: localhost\r\nX: ${'x'.repeat(20_000)}\r\n`,
      413,
      'payload_too_large',
      'the path and headers of the request are too large',
    ],
    [
      'many headers',
      `${list}Host: localhost\r\n${'Many: headers\r\n'.repeat(2_000)}`,
      413,
      'payload_too_large',
      'the path and headers of the request are too large',
    ],
    // Escapes
    ['an escaped slash', `GET /api/v1/probe%2Flist HTTP/1.1\r\nHost: localhost\r\n`, 404, 'not_found', 'no such route'],
    ['dots', `GET /health/../api/v1/probe/list HTTP/1.1\r\nHost: localhost\r\n`, 404, 'not_found', 'no such route'],
    [
      'escaped dots',
      `GET /health/%2e%2e/api/v1/probe/list HTTP/1.1\r\nHost: localhost\r\n`,
      404,
      'not_found',
      'no such route',
    ],
    [
      'an escape cut short',
      `POST ${BASE}/tasks/%E0%A4 HTTP/1.1\r\nHost: localhost\r\n`,
      404,
      'not_found',
      'task not found',
    ],
  ])('HOST-ORIGIN, ERRORS: %s is refused in words', async (_, head, status, code, error) => {
    const calls = probe.probe.calls;
    const bytes = head.includes('\r\n\r\n') ? head.replace('\r\n', `\r\n${CLOSE}`) : `${head}${CLOSE}\r\n`;
    const answer = await sendRaw(probe.url, bytes);
    expect([answer.status, JSON.parse(answer.body)]).toEqual([status, { error, code }]);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    expect(probe.probe.calls).toBe(calls);
  });

  it.each([
    [
      'its own absolute target, whose host counts',
      `GET http://clarion.example${BASE}/list HTTP/1.1\r\nHost: evil.example\r\n`,
    ],
    ['a Host in capitals', `${list}Host: LocalHost:3000\r\n`],
    ['an IPv6 Host', `${list}Host: [::1]:3000\r\nOrigin: http://[::1]:3000\r\n`],
    ['an upgrade that nobody offers', `${list}Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`],
    ['an expectation of its own', `${list}Host: localhost\r\nExpect: the-unexpected\r\n`],
    ['a condition on a version, of which there are none', `${list}Host: localhost\r\nIf-None-Match: *\r\n`],
    ['many headers that are short', `${list}Host: localhost\r\n${'X: x\r\n'.repeat(2_000)}`],
  ])('%s is served', async (_, head) => {
    expect((await sendRaw(probe.url, `${head}${CLOSE}\r\n`)).status).toBe(200);
  });

  it('HEAD is answered like GET, without a body', async () => {
    const answer = await sendRaw(probe.url, `HEAD ${BASE}/list HTTP/1.1\r\nHost: localhost\r\n${CLOSE}\r\n`);
    expect([answer.status, answer.body]).toEqual([200, '']);
  });

  it.each([
    [
      'a body that is wanted is asked for',
      'Content-Length: 2\r\n',
      '{}',
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /,
    ],
    ['a body that is too large is refused unseen', 'Content-Length: 2000000\r\n', '', /^HTTP\/1\.1 413 /],
    [
      'a body behind a bad token is refused unseen',
      'Content-Length: 2\r\nAuthorization: Bearer nobody\r\n',
      '',
      /^HTTP\/1\.1 401 /,
    ],
  ])('AUTH: of clients that ask before they send, %s', async (_, headers, body, expected) => {
    const { hostname, port } = new URL(probe.url);
    const socket = connect(Number(port), hostname);
    let received = '';
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (received.endsWith('100 Continue\r\n\r\n')) socket.write(body);
    });
    socket.write(`${post}Expect: 100-continue\r\n${headers}\r\n`);
    await once(socket, 'close');
    expect(received).toMatch(expected);
  });
});

describe('BAD-TYPES: input that costs more to look at than to send', () => {
  let probe: ProbeApp;
  beforeAll(async () => {
    probe = await startProbeApp({});
  });
  afterAll(() => probe.close());

  const MIB = 1_000_000;
  const fill = (piece: (index: number) => string) => {
    const pieces: string[] = [];
    for (let index = 0, size = 0; size < MIB; index += 1) {
      const next = piece(index);
      pieces.push(next);
      size += next.length + 1;
    }
    return pieces.join(',');
  };

  it.each([
    ['keys', () => `{${fill((index) => `"k${index}":0`)}}`, 'body must not hold more than 5000 values'],
    ['the same key', () => `{${fill(() => '"text":"a"')}}`, undefined],
    ['prototypes', () => `{${fill(() => '"__proto__":{}')}}`, '__proto__ is not a known field'],
    [
      'lists in lists',
      () => '['.repeat(400_000) + ']'.repeat(400_000),
      'body must not be nested more than 16 levels deep',
    ],
    ['items', () => `{"items":[${fill(() => '{"name":"a"}')}]}`, 'body must not hold more than 5000 values'],
    ['one name', () => `{"${'n'.repeat(MIB)}":1}`, `"${'n'.repeat(64)}" is not a known field`],
    ['one text', () => `{"text":"${'x'.repeat(MIB)}"}`, 'text must not be longer than 2000 characters'],
    ['a number', () => `{"text":${'9'.repeat(MIB)}}`, 'text must be text'],
    ['spaces', () => `{"text":"a"${' '.repeat(MIB)}}`, undefined],
    ['combining marks', () => `{"text":"${'\u0301'.repeat(400_000)}"}`, 'text must not be longer than 2000 characters'],
  ])('a MiB of %s is told at once what is wrong with it', async (_, body, sentence) => {
    const answer = await probe.http.post(`${BASE}/echo`).set('Content-Type', 'application/json').send(body());
    expect([answer.status, answer.body.error]).toEqual([sentence === undefined ? 200 : 400, sentence]);
  });

  it('so is a query of as many parameters as headers hold', async () => {
    const query = Array.from({ length: 2_000 }, (_, index) => `p${index}`).join('&');
    const answer = await probe.http.get(`${BASE}/list?${query}`);
    expect([answer.status, answer.body.error]).toEqual([400, 'p0 is not a known field']);
  });
});
