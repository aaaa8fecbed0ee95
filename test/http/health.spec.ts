import { Agent, get } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Readiness } from '../../src/health/readiness.js';
import { startProbeApp } from './probe-app.js';
import type { ProbeApp } from './probe-app.js';

describe('HEALTH', () => {
  let probe: ProbeApp;
  beforeAll(async () => {
    probe = await startProbeApp({ env: { AUTH_MODE: 'enforced', RATE_LIMIT_PER_MINUTE: '0' } });
  });
  afterAll(() => probe.close());

  it('is ready once requests are admitted and while the database answers', async () => {
    await probe.http.get('/health/ready').expect(200, { status: 'ok' });
  });

  it('is not ready while the database is out of reach, yet alive', async () => {
    probe.database.ping = async () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.1:5432'));
    const response = await probe.http.get('/health/ready').expect(503);
    expect(response.body).toEqual({ error: 'not ready: database is down', code: 'temporarily_unavailable' });
    expect(response.headers['retry-after']).toBe('1');
    await probe.http.get('/health/live').expect(200);
    probe.database.ping = async () => undefined;
    await probe.http.get('/health/ready').expect(200);
  });

  it('is not ready while the server starts or stops', async () => {
    const readiness = new Readiness();
    expect(readiness.notReadyBecause).toBe('starting');
    probe.app.get(Readiness).onModuleDestroy();
    const response = await probe.http.get('/health/ready').expect(503);
    expect(response.body.error).toBe('not ready: server is stopping');
    probe.app.get(Readiness).admit();
  });
});

describe('stopping', () => {
  it('SHUTDOWN: lets a request under way finish, and accepts no other', async () => {
    const probe = await startProbeApp();
    const held = probe.http.get('/api/v1/probe/hold').then((response) => response.body as object);
    await probe.probe.held.opened;
    const closed = probe.close();
    await expect(probe.http.get('/health/live')).rejects.toThrow(/ECONNREFUSED|ECONNRESET/);
    probe.probe.released.open();
    expect(await held).toEqual({ held: true });
    await closed;
  });

  it('SHUTDOWN: does not wait for connections that carry no request', async () => {
    const probe = await startProbeApp();
    const agent = new Agent({ keepAlive: true });
    await new Promise((resolve) =>
      get(`${probe.url}/health/live`, { agent }, (response) => response.resume().on('end', resolve)),
    );
    await probe.close();
    expect(probe.logged.map((record) => record['event'])).not.toContain('server.requests_cut');
    agent.destroy();
  });

  it('SHUTDOWN: cuts a request that outlasts the grace', async () => {
    const probe = await startProbeApp({ env: { SHUTDOWN_GRACE_MS: '50' } });
    const held = probe.http.get('/api/v1/probe/hold').then(
      () => 'answered',
      () => 'cut',
    );
    await probe.probe.held.opened;
    await probe.close();
    expect(await held).toBe('cut');
    expect(probe.logged.map((record) => record['event'])).toContain('server.requests_cut');
  });
});
