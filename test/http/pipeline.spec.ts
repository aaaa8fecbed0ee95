import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startProbeApp } from './probe-app.js';
import type { ProbeApp } from './probe-app.js';
import { sendRaw } from './raw-request.js';

const BASE = '/api/v1/probe';
const FORBIDDEN_HOST = 'this Host is not allowed; the operator can add it to ALLOWED_HOSTS';
const FORBIDDEN_ORIGIN = 'this Origin is not allowed; the operator can add it to CORS_ORIGINS';
const MEDIA = 'a body must be application/json in UTF-8, not compressed';

describe('the request pipeline, authentication enforced', () => {
  let probe: ProbeApp;
  beforeAll(async () => {
    probe = await startProbeApp({
      env: { AUTH_MODE: 'enforced', BODY_LIMIT_BYTES: '16384', RATE_LIMIT_PER_MINUTE: '0' },
    });
  });
  afterAll(() => probe.close());

  it.each([
    ['no token', {}],
    ['a bad token', { Authorization: 'Bearer nobody' }],
  ])('AUTH: answers %s with 401 before route, Host, Origin, type, size or syntax are looked at', async (_, headers) => {
    const refused = { error: 'a valid access token is required', code: 'unauthorized' };
    const requests = [
      probe.http.get('/api/v1/no-such-route'),
      probe.http.get('/anything'),
      probe.http.get(`${BASE}/list`).set('Host', 'evil.example'),
      probe.http.get(`${BASE}/list`).set('Origin', 'https://evil.example'),
      probe.http.post(`${BASE}/echo`).set('Content-Type', 'text/plain').send('x'),
      probe.http.post(`${BASE}/echo`).set('Content-Type', 'application/json').send('{'),
      probe.http.post(`${BASE}/echo`).send({ text: 'x'.repeat(20_000) }),
      probe.http.post(`${BASE}/tasks/%ZZ`).send({}),
    ];
    for (const request of requests) {
      const response = await request.set(headers);
      expect([response.status, response.body]).toEqual([401, refused]);
      expect(response.headers['www-authenticate']).toBe('Bearer realm="clarion"');
    }
    expect(probe.probe.calls).toBe(0);
  });

  it('BUDGET: gives 503 when the identity cannot be looked up in time', async () => {
    const response = await probe.http.get(`${BASE}/list`).set('Authorization', 'Bearer slow').expect(503);
    expect(response.body).toEqual({
      error: 'the service is temporarily unavailable',
      code: 'temporarily_unavailable',
    });
    expect(response.headers['retry-after']).toBe('1');
  });

  it('AUTH: needs no token for health, and gives open paths no caller to take for everybody', async () => {
    await probe.http.get('/health/live').expect(200, { status: 'ok' });
    const page = await probe.http.get('/').expect(404);
    expect(page.body).toEqual({ error: 'no such route', code: 'not_found' });
    const climbing = await sendRaw(
      probe.url,
      `GET /health/../api/v1/probe/list HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    expect(climbing.status).toBe(404);
    await probe.http.get('/%68ealth/live').expect(401);
  });

  const as = (token: string) => ({ Authorization: `Bearer ${token}` });

  it('ORDER: decides in the order body that cannot be read, 403, 404, validation', async () => {
    const post = (path: string, body: string, token = 'user') =>
      probe.http.post(`${BASE}/${path}`).set(as(token)).set('Content-Type', 'application/json').send(body);
    expect((await post('tasks/missing', '{', 'agent')).body.error).toBe('body must be JSON');
    expect((await post('tasks/missing', `{"text":"${'x'.repeat(20_000)}"}`, 'agent')).status).toBe(413);
    expect((await post('tasks/missing', '{"nonsense":1}', 'agent')).body).toEqual({
      error: 'an agent may not make this kind of call',
      code: 'forbidden',
    });
    expect((await post('tasks/missing', '{"nonsense":1}')).body).toEqual({
      error: 'task not found',
      code: 'not_found',
    });
    expect((await post('tasks/mine', '{"nonsense":1}')).body).toEqual({
      error: 'nonsense is not a known field',
      code: 'validation_failed',
    });
    expect((await post('tasks/mine', '{}')).status).toBe(201);
  });

  it('ORDER: looks an id of the body up before validating it, unless it is no id at all', async () => {
    const post = (body: object) => probe.http.post(`${BASE}/by-body`).set(as('user')).send(body);
    expect((await post({ task_id: 'missing', nonsense: 1 })).status).toBe(404);
    expect((await post({ task_id: 'mine', nonsense: 1 })).status).toBe(400);
    expect((await post({ task_id: 7 })).body.error).toBe('task_id must be text');
    expect((await post({ task_id: '' })).status).toBe(200);
    expect((await post({})).status).toBe(200);
    expect((await post({ task_id: 'a\u0000' })).status).toBe(404);
  });

  it('A3: answers every id that no row can have as it answers a missing one, byte for byte', async () => {
    const ids = ['missing', '%ZZ', '%', '%00', '%FF%FE', 'a%2Fb%ZZ', '%F0%9F%98%80', 'x'.repeat(10_000), '%E0%A4%A'];
    const shown = await Promise.all(
      ids.map(async (id) => {
        const { status, headers, body } = await sendRaw(
          probe.url,
          `POST ${BASE}/tasks/${id} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer user\r\nConnection: close\r\n\r\n`,
        );
        const compared = [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id');
        return JSON.stringify({ status, compared, body });
      }),
    );
    expect(new Set(shown).size).toBe(1);
    expect(shown[0]).toContain('"status":404');
  });
});

describe('the request pipeline, authentication off', () => {
  let probe: ProbeApp;
  beforeAll(async () => {
    probe = await startProbeApp({
      env: {
        BODY_LIMIT_BYTES: '16384',
        ALLOWED_HOSTS: 'clarion.example,lan.example:8080',
        CORS_ORIGINS: 'https://inbox.example',
        RATE_LIMIT_PER_MINUTE: '0',
      },
    });
  });
  afterAll(() => probe.close());
  const post = (path: string, body?: string | Buffer, type = 'application/json') => {
    const request = probe.http.post(`${BASE}/${path}`);
    return body === undefined ? request : request.set('Content-Type', type).send(body);
  };

  it('AUTH: takes a caller without a token for the unscoped one, and refuses a bad token all the same', async () => {
    expect((await post('echo', '{"text":"a"}')).body).toEqual({
      body: { text: 'a' },
      caller: 'unscoped',
      left: true,
      instance: true,
    });
    await probe.http.get(`${BASE}/list`).set('Authorization', 'Bearer nobody').expect(401);
    await probe.http.get(`${BASE}/list`).set('Authorization', 'nonsense').expect(401);
  });

  it.each([
    ['evil.example', 403],
    ['evil.example:3000', 403],
    ['localhost.evil.example', 403],
    ['127.0.0.1.evil.example', 403],
    ['10.0.0.1', 403],
    ['lan.example', 403],
    ['lan.example:8081', 403],
    ['localhost', 200],
    ['LOCALHOST:1', 200],
    ['127.0.0.1:80', 200],
    ['[::1]:3000', 200],
    ['clarion.example', 200],
    ['clarion.example:444', 200],
    ['lan.example:8080', 200],
  ])('HOST-ORIGIN: Host %s gives %i', async (host, status) => {
    const response = await probe.http.get(`${BASE}/list`).set('Host', host).expect(status);
    if (status === 403) expect(response.body).toEqual({ error: FORBIDDEN_HOST, code: 'forbidden' });
    expect((await probe.http.get('/health/live').set('Host', host)).status).toBe(status);
  });

  it('HOST-ORIGIN: a request without any Host is refused', async () => {
    const { status } = await sendRaw(probe.url, `GET ${BASE}/list HTTP/1.0\r\n\r\n`);
    expect(status).toBe(403);
  });

  it.each([
    ['https://evil.example', 'localhost:3000', 403],
    ['null', 'localhost:3000', 403],
    ['http://localhost:8080', 'localhost:3000', 403],
    ['http://127.0.0.1:3000', 'localhost:3000', 403],
    ['file://localhost', 'localhost', 403],
    ['not an origin', 'localhost', 403],
    ['http://localhost:3000', 'localhost:3000', 200],
    ['https://localhost', 'localhost', 200],
    ['http://localhost', 'localhost:80', 200],
    ['https://inbox.example', 'localhost:3000', 200],
    ['https://inbox.example.evil.example', 'localhost:3000', 403],
  ])('HOST-ORIGIN: Origin %s on Host %s gives %i', async (origin, host, status) => {
    const response = await probe.http.get(`${BASE}/list`).set({ Host: host, Origin: origin }).expect(status);
    if (status === 403) expect(response.body).toEqual({ error: FORBIDDEN_ORIGIN, code: 'forbidden' });
  });

  it('HOST-ORIGIN: lets the pages of a configured origin, and of no other, read answers and send what a preflight asks', async () => {
    const preflight = (origin: string) =>
      probe.http.options(`${BASE}/echo`).set({ Origin: origin, 'Access-Control-Request-Method': 'POST' });
    const allowed = await preflight('https://inbox.example').expect(204);
    expect(allowed.headers['access-control-allow-origin']).toBe('https://inbox.example');
    expect(allowed.headers['access-control-allow-headers']).toContain('Authorization');
    expect(allowed.headers['access-control-allow-credentials']).toBeUndefined();
    const foreign = await preflight('https://evil.example').expect(403);
    expect(foreign.headers['access-control-allow-origin']).toBeUndefined();
    const refused = await probe.http
      .get(`${BASE}/list`)
      .set({ Origin: 'https://inbox.example', Authorization: 'Bearer nobody' })
      .expect(401);
    expect(refused.headers['access-control-allow-origin']).toBe('https://inbox.example');
    expect(refused.headers['vary']).toContain('Origin');
  });

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/json; charset=latin1',
    'application/jsonp',
  ])('HOST-ORIGIN: a body of type %s is 415, not an empty body', async (type) => {
    const response = await post('echo', '{}', type);
    expect([response.status, response.body]).toEqual([415, { error: MEDIA, code: 'unsupported_media_type' }]);
  });

  it.each([
    ['without a type', `Content-Length: 2\r\n\r\n{}`, 415],
    ['without a type, chunked', `Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`, 415],
    ['of two types', `Content-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}`, 415],
    ['empty and chunked', `Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 200],
    ['of length 0 and another type', `Content-Type: text/plain\r\nContent-Length: 0\r\n\r\n`, 200],
    ['compressed', `Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`, 415],
    [
      'in JSON, chunked',
      `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
      200,
    ],
    ['of a negative length', `Content-Type: application/json\r\nContent-Length: -1\r\n\r\n{}`, 400],
  ])('HOST-ORIGIN: a body %s', async (_, rest, status) => {
    const request = `POST ${BASE}/echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${rest}`;
    expect((await sendRaw(probe.url, request)).status).toBe(status);
  });

  it('takes application/json in any spelling, with UTF-8', async () => {
    await post('echo', '{}', 'Application/JSON').expect(200);
    await post('echo', '{}', 'application/json; charset="UTF-8"').expect(200);
  });

  it.each([
    ['{', 'body must be JSON'],
    ['{"text":"secret', 'body must be JSON'],
    ['undefined', 'body must be JSON'],
    ['[]', 'body must be an object'],
    ['null', 'body must be an object'],
    ['"text"', 'body must be an object'],
    ['{"nonsense":1}', 'nonsense is not a known field'],
    ['{"__proto__":{"text":"a"}}', '__proto__ is not a known field'],
    ['{"constructor":1}', 'constructor is not a known field'],
    ['{"items":[{"name":"a","neme":"b"}]}', 'items[0].neme is not a known field'],
    ['{"items":[{"name":"a","__proto__":1}]}', 'items[0].__proto__ is not a known field'],
    ['{"text":null}', 'text must not be null'],
    ['{"text":"\\u0000"}', 'text must not contain U+0000 or a lone surrogate'],
    ['{"text":"\\ud800"}', 'text must not contain U+0000 or a lone surrogate'],
    [`{"text":${'['.repeat(2_000)}${']'.repeat(2_000)}}`, 'body must not be nested more than 16 levels deep'],
    [`{"items":[${'1,'.repeat(6_000)}1]}`, 'body must not hold more than 5000 values'],
  ])('BAD-TYPES, BAD-TEXT, UNKNOWN-FIELDS: the body %s is a 400 that names what is wrong', async (body, sentence) => {
    const response = await post('echo', body);
    expect([response.status, response.body]).toEqual([400, { error: sentence, code: 'validation_failed' }]);
  });

  it('BAD-TEXT: a body that is not UTF-8 is a 400, and not repaired', async () => {
    const head = `POST ${BASE}/echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n`;
    const body = Buffer.concat([Buffer.from('{"text":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    const bytes = Buffer.concat([Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n`), body]);
    const response = await sendRaw(probe.url, bytes);
    expect([response.status, JSON.parse(response.body)]).toEqual([
      400,
      { error: 'body must be UTF-8', code: 'validation_failed' },
    ]);
  });

  it('an absent body is an empty object where fields are declared, and none where anything goes', async () => {
    expect((await post('echo')).body.body).toEqual({});
    expect((await post('raw')).body).toEqual({ body: 'none' });
    expect((await post('raw', '[1,{"a":null}]')).body).toEqual({ body: [1, { a: null }] });
  });

  it('UNKNOWN-FIELDS: refuses a body, or a query, where the contract has none', async () => {
    const get = probe.http.get(`${BASE}/list`).set('Content-Type', 'application/json').send('{"limit":1}');
    expect((await get).body.error).toBe('limit is not a known field');
    expect((await post('echo?text=a', '{}')).body.error).toBe('text is not a known field');
  });

  it('BAD-TYPES: answers a body over the limit with 413, announced or not, and so does one of 10 MB', async () => {
    const told = { error: 'the body must not be larger than 16384 bytes', code: 'payload_too_large' };
    for (const size of [16_384, 10_000_000]) {
      const response = await post('echo', `{"text":"${'x'.repeat(size)}"}`);
      expect([response.status, response.body]).toEqual([413, told]);
    }
    const chunk = 'x'.repeat(0x8000);
    const chunked = `POST ${BASE}/echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n8000\r\n${chunk}\r\n0\r\n\r\n`;
    const response = await sendRaw(probe.url, chunked);
    expect([response.status, JSON.parse(response.body)]).toEqual([413, told]);
  });

  it.each([
    ['limit=10&cursor=a&all=true', { limit: 10, cursor: 'a', all: true }],
    ['limit=-3', { limit: -3 }],
    ['limit=99999999999999999999', { limit: Number.MAX_SAFE_INTEGER }],
    ['cursor=10', { cursor: '10' }],
    ['cursor=', { cursor: '' }],
    ['', {}],
  ])('L10: reads the query %s', async (query, read) => {
    expect((await probe.http.get(`${BASE}/list?${query}`)).body).toEqual({ query: read });
  });

  it.each([
    ['limit=', 'limit must be a whole number'],
    ['limit=1.5', 'limit must be a whole number'],
    ['limit=1e3', 'limit must be a whole number'],
    ['limit=abc', 'limit must be a whole number'],
    ['limit=1&limit=2', 'limit must be given once'],
    ['limt=1', 'limt is not a known field'],
    ['all=yes', 'all must be true or false'],
    ['cursor[]=a', '"cursor[]" is not a known field'],
    ['__proto__=a', '__proto__ is not a known field'],
    ['cursor=%00', 'cursor must not contain U+0000 or a lone surrogate'],
  ])('UNKNOWN-FIELDS: the query %s is a 400 that names the field', async (query, sentence) => {
    const response = await probe.http.get(`${BASE}/list?${query}`);
    expect([response.status, response.body]).toEqual([400, { error: sentence, code: 'validation_failed' }]);
  });

  it.each([
    ['GET', '/nothing'],
    ['GET', `${BASE}/echo`],
    ['PUT', `${BASE}/list`],
    ['OPTIONS', `${BASE}/list`],
    ['GET', '/%ZZ'],
  ])('ERRORS: answers %s %s, which no route has, with 404', async (method, path) => {
    const { status, body } = await sendRaw(
      probe.url,
      `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    expect([status, JSON.parse(body)]).toEqual([404, { error: 'no such route', code: 'not_found' }]);
  });

  it('ERRORS: answers what is no HTTP, or too much of it, in the shape of every other error', async () => {
    const nonsense = await sendRaw(probe.url, 'HELO there\r\n\r\n');
    expect([nonsense.status, JSON.parse(nonsense.body)]).toEqual([
      400,
      { error: 'this is not an HTTP request', code: 'validation_failed' },
    ]);
    const long = await sendRaw(probe.url, `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    expect([long.status, JSON.parse(long.body).code]).toEqual([413, 'payload_too_large']);
  });
});
