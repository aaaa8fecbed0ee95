import { get } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startProbeApp } from './probe-app.js';
import type { ProbeApp } from './probe-app.js';
import { sendRaw } from './raw-request.js';

const BASE = '/api/v1/probe';
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

describe('errors', () => {
  let probe: ProbeApp;
  beforeAll(async () => {
    probe = await startProbeApp();
  });
  afterAll(() => probe.close());
  const fail = (how: string) => probe.http.post(`${BASE}/fail/${how}`);

  it('ERRORS: an error has its status, its sentence and its code, and nothing else', async () => {
    expect((await fail('conflict').expect(409)).body).toEqual({ error: 'the session is completed', code: 'conflict' });
  });

  it('ERRORS: a 503 says when to come back', async () => {
    const response = await fail('unavailable').expect(503);
    expect(response.body).toEqual({ error: 'try again', code: 'temporarily_unavailable' });
    expect(response.headers['retry-after']).toBe('1');
  });

  it('ERROR-INTERNAL: a failed hand-over says whether to try again, under a request id', async () => {
    const response = await fail('internal').expect(500);
    expect(response.body).toEqual({
      error: 'the answer could not be handed over',
      code: 'internal',
      request_id: response.headers['x-request-id'],
      retryable: false,
    });
  });

  it('ERROR-INTERNAL, NO-SECRETS: an unknown error tells no stack and no SQL, and is logged once under the same request id', async () => {
    probe.logged.length = 0;
    const response = await fail('unknown').expect(500);
    expect(response.body).toEqual({
      error: 'something went wrong on our side; the log has more under this request_id',
      code: 'internal',
      request_id: response.headers['x-request-id'],
    });
    expect(probe.logged).toEqual([
      expect.objectContaining({
        level: 'error',
        event: 'request.failed',
        method: 'POST',
        path: '/api/v1/probe/fail/unknown',
        request_id: response.headers['x-request-id'],
      }),
    ]);
    expect(JSON.stringify(probe.logged)).not.toMatch(/SELEC|tea/);
  });

  it('CALLER-GONE: just closes when the caller has gone, and when half an answer is out already', async () => {
    const bare = 'HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n';
    await expect(sendRaw(probe.url, `POST ${BASE}/fail/gone ${bare}`)).rejects.toThrow('no response');
    const half = await sendRaw(probe.url, `GET ${BASE}/half ${bare}`);
    expect(half.body).toContain('{"half":');
    expect(half.body).not.toContain('\r\n0\r\n');
    expect(half.body).not.toContain('code');
  });

  it('CALLER-GONE: tells a handler that its caller has gone', async () => {
    const request = get(`${probe.url}${BASE}/hold`);
    request.on('error', () => undefined);
    await probe.probe.held.opened;
    request.destroy();
    await probe.probe.gone.opened;
    probe.probe.released.open();
  });

  it('ERROR-INTERNAL: gives each request an id of ours and takes none from outside', async () => {
    const sent = '11111111-1111-4111-8111-111111111111';
    const [a, b] = await Promise.all([
      probe.http.get(`${BASE}/list`).set('X-Request-Id', sent),
      probe.http.get('/health/live'),
    ]);
    expect(a.headers['x-request-id']).toMatch(ID);
    expect(a.headers['x-request-id']).not.toBe(sent);
    expect(a.headers['x-request-id']).not.toBe(b.headers['x-request-id']);
  });

  it('sends security headers with everything, errors too, and neither ETag nor X-Powered-By', async () => {
    for (const response of [await probe.http.get('/health/live'), await probe.http.get('/nothing')]) {
      expect(response.headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
        'cross-origin-resource-policy': 'same-origin',
        'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
      });
      expect(response.headers).not.toHaveProperty('etag');
      expect(response.headers).not.toHaveProperty('x-powered-by');
    }
  });
});
