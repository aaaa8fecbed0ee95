import { expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller, type Heard } from '../support/callers.js';
import { describeEngine } from '../support/engines.js';
import { makeEstate, type Estate } from '../support/estate.js';
import { EventClient } from '../support/event-client.js';
import { questionOf } from '../support/question.js';
import { until } from '../support/until.js';

describeEngine('sqlite', 'HELD-LIMIT: waits and streams', (engine) => {
  async function withApp(env: NodeJS.ProcessEnv, test: (app: RunningApp) => Promise<void>): Promise<void> {
    const app = await startApp({ url: await engine.createUrl() }, { authMode: 'enforced', env });
    try {
      await test(app);
    } finally {
      await app.close();
    }
  }

  const heldBy = async (app: RunningApp): Promise<number> =>
    Number(/^held_requests (\d+)$/m.exec((await app.http.get('/metrics')).text)?.[1]);

  const OPEN = { OPEN_METRICS_AND_DOCS: 'true' };
  const told = ({ status, headers, json }: Heard) => [status, json.code, json.error, headers.get('retry-after')];

  /** Everything that an agent can hold open over HTTP, or that answers at once what of it is refused. */
  function holds(app: RunningApp, { pendingId, sessionId, agentToken }: Estate) {
    const agent = new RestCaller(app.url, agentToken);
    const wait = (path: string) => (signal: AbortSignal) => agent.send('GET', path, undefined, signal);
    return {
      wait: wait(`/clarification/${pendingId}/wait?timeout=60`),
      defaultWait: wait(`/clarification/${pendingId}/wait`),
      mailbox: wait(`/task-sessions/${sessionId}/mailbox?wait=60`),
      events: wait('/events'),
    };
  }

  it('of one caller are bounded over all its ways, and what has ended makes room again', async () => {
    await withApp({ MAX_HELD_PER_CALLER: '2', ASK_HOLD_MS: '200', ...OPEN }, async (app) => {
      const owner = new RestCaller(app.url, (await app.createUser()).token);
      const estate = await makeEstate(owner);
      const ways = holds(app, estate);
      const mcp = await McpCaller.open(app.url, `/mcp/sessions/${estate.sessionId}`, estate.agentToken);
      const leaving = new AbortController();
      const held = [ways.wait(leaving.signal), ways.mailbox(leaving.signal)].map((wait) => wait.catch(() => 'left'));
      await until(async () => (await heldBy(app)) === 2);

      const sentence = '2 waits and streams of this caller are open already; end some, or try again later';
      for (const way of [ways.wait, ways.defaultWait, ways.mailbox, ways.events]) {
        expect(told(await way(leaving.signal))).toEqual([429, 'too_many_requests', sentence, '5']);
      }
      const stream = await fetch(mcp.endpoint, { headers: { ...mcp.headers, accept: 'text/event-stream' } });
      expect([stream.status, ((await stream.json()) as { code: string }).code]).toEqual([429, 'too_many_requests']);
      for (const [tool, args] of [
        ['wait_for_answer_kandev', { pending_id: estate.pendingId }],
        ['ask_user_question_kandev', { questions: [questionOf('another')] }],
      ] as const) {
        expect(await mcp.call(tool, args)).toMatchObject({ isError: true, text: `too_many_requests: ${sentence}` });
      }
      // What was refused has asked nothing.
      expect((await owner.make('GET', '/clarification')).count).toBe(1);

      leaving.abort();
      expect(await Promise.all(held)).toEqual(['left', 'left']);
      await until(async () => (await heldBy(app)) === 0);
      const back = new AbortController();
      const again = ways.wait(back.signal).catch(() => 'left');
      await until(async () => (await heldBy(app)) === 1);
      back.abort();
      await again;
    });
  });

  it('that only look are not counted, nor refused', async () => {
    await withApp({ MAX_HELD_PER_CALLER: '1', ...OPEN }, async (app) => {
      const owner = new RestCaller(app.url, (await app.createUser()).token);
      const { sessionId, agentToken, pendingId } = await makeEstate(owner);
      const agent = new RestCaller(app.url, agentToken);
      const mcp = await McpCaller.open(app.url, `/mcp/sessions/${sessionId}`, agentToken);
      const stream = await EventClient.open(app.url, { token: agentToken });
      await until(async () => (await heldBy(app)) === 1);
      expect((await agent.get(`/clarification/${pendingId}/wait?timeout=0`)).status).toBe(504);
      expect((await agent.get(`/task-sessions/${sessionId}/mailbox`)).status).toBe(204);
      const looked = await mcp.call('wait_for_answer_kandev', { pending_id: pendingId, timeout_seconds: 0 });
      expect(looked.value).toMatchObject({ status: 'pending' });
      expect(await heldBy(app)).toBe(1);
      await stream.close();
    });
  });

  it('of a call over MCP are given back when it has ended', async () => {
    await withApp({ MAX_HELD_PER_CALLER: '1', ASK_HOLD_MS: '20', ...OPEN }, async (app) => {
      const { sessionId, agentToken, pendingId } = await makeEstate(
        new RestCaller(app.url, (await app.createUser()).token),
      );
      const mcp = await McpCaller.open(app.url, `/mcp/sessions/${sessionId}`, agentToken);
      for (let call = 0; call < 3; call += 1) {
        const waited = await mcp.call('wait_for_answer_kandev', { pending_id: pendingId });
        expect(waited.value).toMatchObject({ status: 'pending' });
      }
      const wrong = await mcp.call('wait_for_answer_kandev', { pending_id: 'nobody' });
      expect(wrong.text).toBe('not_found: clarification request not found');
      await until(async () => (await heldBy(app)) === 0);
    });
  });

  it('of one user are counted together over their tokens, and of a session’s agent by themselves', async () => {
    await withApp({ MAX_HELD_PER_CALLER: '1', ...OPEN }, async (app) => {
      const [ada, bob] = [await app.createUser(), await app.createUser()];
      const { agentToken } = await makeEstate(new RestCaller(app.url, ada.token));
      const open = (token: string) => EventClient.open(app.url, { token });
      const streams = await Promise.all([ada.token, bob.token, agentToken].map(open));
      expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
      const refused = await open(await app.createToken(ada.name));
      await refused.end();
      expect(refused.status).toBe(429);
      await Promise.all(streams.map((stream) => stream.close()));
    });
  });

  it('of one address are bounded whosever they are, and of the process whatever their address', async () => {
    const env = { MAX_HELD_PER_CALLER: '10', MAX_HELD_PER_ADDRESS: '2', MAX_HELD_REQUESTS: '3', TRUST_PROXY: '1' };
    await withApp({ ...env, ...OPEN }, async (app) => {
      const tokens = [(await app.createUser()).token, (await app.createUser()).token, (await app.createUser()).token];
      const open = (by: number, from: string) =>
        EventClient.open(app.url, { token: tokens[by] ?? '', headers: { 'x-forwarded-for': from } });
      const streams = [await open(0, '10.0.0.1'), await open(1, '10.0.0.1'), await open(2, '10.0.0.2')];
      const [ofAddress, ofAll] = [await open(2, '10.0.0.1'), await open(0, '10.0.0.3')];
      await Promise.all([ofAddress.end(), ofAll.end()]);
      expect([ofAddress.status, JSON.parse(ofAddress.body)]).toEqual([
        429,
        {
          error: '2 waits and streams from this address are open already; end some, or try again later',
          code: 'too_many_requests',
        },
      ]);
      expect([ofAll.status, JSON.parse(ofAll.body)]).toEqual([
        503,
        {
          error: 'the server holds as many waits and streams as it may; try again later',
          code: 'temporarily_unavailable',
        },
      ]);
      expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
      await Promise.all(streams.map((stream) => stream.close()));
    });
  });
});
