import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { RestCaller } from '../support/callers.js';
import { describeEngine } from '../support/engines.js';
import { answersTo, makeEstate, type Estate } from '../support/estate.js';
import { until } from '../support/until.js';

describeEngine('sqlite', 'Requests sent before the reply to an earlier one', (engine) => {
  let app: RunningApp;
  let owner: RestCaller;
  beforeAll(async () => {
    const env = { OPEN_METRICS_AND_DOCS: 'true', REATTACH_MS: '0' };
    app = await startApp({ url: await engine.createUrl() }, { authMode: 'enforced', env });
    owner = new RestCaller(app.url, (await app.createUser()).token);
  });
  afterAll(() => app.close());

  const shown = async (metric: string): Promise<number> =>
    Number(
      new RegExp(`^${metric.replace(/[{}]/g, '\\$&')} (\\d+)$`, 'm').exec((await app.http.get('/metrics')).text)?.[1],
    );

  /** All on one connection, without waiting for any reply. */
  async function pipeline(token: string, paths: readonly string[]): Promise<Socket> {
    const { hostname, port } = new URL(app.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    const head = `HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    socket.write(paths.map((path) => `GET /api/v1${path} ${head}`).join(''));
    return socket;
  }

  const mailboxOf = ({ sessionId }: Estate): string => `/task-sessions/${sessionId}/mailbox`;

  it('HELD-LIMIT: hold nothing once their connection has closed, though no reply had its turn', async () => {
    const estate = await makeEstate(owner);
    const paths = [`${mailboxOf(estate)}?wait=60`, '/events', `/clarification/${estate.pendingId}/wait?timeout=60`];
    const socket = await pipeline(estate.agentToken, paths);
    await until(async () => (await shown('held_requests')) === 3 && (await shown('sse_clients')) === 1);
    socket.destroy();
    await until(async () => (await shown('held_requests')) === 0 && (await shown('sse_clients')) === 0);
    await until(async () => (await shown('clarification_active_waiters{role="agent"}')) === 0);
  });

  it('HANDOVER-LOST: an answer whose reply had not had its turn when the connection closed resumes the agent', async () => {
    const estate = await makeEstate(owner);
    const wait = `/clarification/${estate.pendingId}/wait?timeout=60`;
    const socket = await pipeline(estate.agentToken, [`${mailboxOf(estate)}?wait=60`, wait]);
    await until(async () => (await shown('held_requests')) === 2);
    await owner.make('POST', `/clarification/${estate.pendingId}/respond`, answersTo(['q1']));
    socket.destroy();
    const agent = new RestCaller(app.url, estate.agentToken);
    await until(async () => (await agent.get(mailboxOf(estate))).status === 200);
    expect((await agent.make('GET', mailboxOf(estate))).prompt).toContain('Left of q1 (left)');
  });
});
