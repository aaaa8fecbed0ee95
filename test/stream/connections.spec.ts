import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { connect, type Socket } from 'node:net';
import { EventBus } from '../../src/events/event-bus.js';
import { Deadline } from '../../src/common/deadline.js';
import { Accounts } from '../../src/identity/accounts.js';
import type { Reader } from '../../src/persistence/unit-of-work.js';
import { StreamSettings } from '../../src/stream/stream-settings.js';
import { startApp, type RunningApp, type StartAppOptions } from '../support/app.js';
import { RestCaller } from '../support/callers.js';
import { cuttingProxy } from '../support/cutting-proxy.js';
import { describeEachEngine, describeEngine } from '../support/engines.js';
import { makeEstate } from '../support/estate.js';
import { EventClient } from '../support/event-client.js';
import { readerWith } from '../support/reader-with.js';
import { until } from '../support/until.js';

const withSettings = (settings: Partial<StreamSettings>): StartAppOptions => ({
  overrides: (builder) =>
    builder.overrideProvider(StreamSettings).useValue(Object.assign(new StreamSettings(), settings)),
});

async function clientsShown(app: RunningApp): Promise<string | undefined> {
  const { text } = await app.http.get('/metrics');
  return /^sse_clients (\d+)$/m.exec(text)?.[1];
}

describeEngine('sqlite', 'EVENTS-OPEN: a connection', (engine) => {
  let app: RunningApp;
  beforeAll(async () => {
    app = await startApp({ url: await engine.createUrl() }, withSettings({ heartbeatMs: 20 }));
  });
  afterAll(() => app.close());

  it('is answered at once, in the type and with the headers that keep proxies from holding it back', async () => {
    const stream = await EventClient.open(app.url);
    expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream']);
    expect(stream.headers).toMatchObject({
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'x-request-id': expect.any(String),
    });
    expect(stream.headers).not.toHaveProperty('content-length');
    await until(() => stream.comments[0] === 'open');
    await stream.close();
  });

  it('gets heartbeats, which are no events', async () => {
    const stream = await EventClient.open(app.url);
    await until(() => stream.comments.filter((comment) => comment === 'heartbeat').length >= 3);
    expect(stream.events).toEqual([]);
    await stream.close();
  });

  it('moves on with the heartbeats past what is not for its caller, so that coming back is no resync', async () => {
    const [ada, bob] = [await app.createUser(), await app.createUser()];
    const stream = await EventClient.open(app.url, { token: bob.token });
    const witness = await EventClient.open(app.url);
    const estate = await makeEstate(new RestCaller(app.url, ada.token));
    const { id } = await witness.event('clarification.requested', { pending_id: estate.pendingId });
    await until(() => stream.lastEventId === id);
    expect(stream.events).toEqual([]);
    await Promise.all([stream.close(), witness.close()]);
  });

  it('METRICS: is counted while it is open', async () => {
    await until(async () => (await clientsShown(app)) === '0');
    const streams = [await EventClient.open(app.url), await EventClient.open(app.url)];
    expect(await clientsShown(app)).toBe('2');
    await streams[0]?.close();
    await until(async () => (await clientsShown(app)) === '1');
    await streams[1]?.close();
    await until(async () => (await clientsShown(app)) === '0');
  });

  it('takes no query, and no page of a foreign origin', async () => {
    const refusals = [
      await EventClient.open(app.url, { path: '/api/v1/events?lastEventId=1-1' }),
      await EventClient.open(app.url, { headers: { origin: 'https://evil.example' } }),
      await EventClient.open(app.url, { token: 'clu_wrong' }),
    ];
    await Promise.all(refusals.map((refusal) => refusal.end()));
    expect(refusals.map(({ status, body }) => [status, (JSON.parse(body) as { code: string }).code])).toEqual([
      [400, 'validation_failed'],
      [403, 'forbidden'],
      [401, 'unauthorized'],
    ]);
  });

  it('answers HEAD with the head alone', async () => {
    const response = await fetch(`${app.url}/api/v1/events`, { method: 'HEAD' });
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    await until(async () => (await clientsShown(app)) === '0');
  });

  it('which is cut while it is written to takes nothing else with it', async () => {
    const [one, other] = [await EventClient.open(app.url), await EventClient.open(app.url)];
    const bus = app.app.get(EventBus);
    for (let count = 0; count < 50; count += 1) {
      bus.publish([{ type: 'turn.started', taskId: 't', sessionId: 's', turnId: `${count}` }]);
      if (count === 25) void one.close();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await other.event('turn.started', { turn_id: '49' });
    await other.close();
  });
});

describeEachEngine('EVENTS-OPEN: a client that leaves while its token is looked up', (engine) => {
  it('leaves nothing behind', async () => {
    let afterwards: () => Promise<void> = () => Promise.resolve();
    const wrapReader = (inner: Reader): Reader => {
      const query = async (...statement: Parameters<Reader['query']>): Promise<unknown> => {
        const result = await inner.query(...statement);
        await afterwards();
        return result;
      };
      return Object.create(inner, { query: { value: query } }) as Reader;
    };
    const env = { OPEN_METRICS_AND_DOCS: 'true' };
    const app = await startApp({ url: await engine.createUrl() }, { authMode: 'enforced', env, wrapReader });
    try {
      const { token } = await app.createUser();
      const leaving = new AbortController();
      let release: () => void = () => undefined;
      const isHeld = new Promise<void>((resolve) => (release = resolve));
      const isLookedUp = new Promise<void>((resolve) => {
        afterwards = () => {
          resolve();
          return isHeld;
        };
      });
      const init = { headers: { authorization: `Bearer ${token}` }, signal: leaving.signal };
      const left = fetch(`${app.url}/api/v1/events`, init).catch(() => 'left');
      await isLookedUp;
      leaving.abort();
      expect(await left).toBe('left');
      await until(() => app.logged.some(({ event, aborted }) => event === 'request.finished' && aborted === true));
      release();
      const stays = await EventClient.open(app.url, { token });
      expect(await clientsShown(app)).toBe('1');
      await stays.close();
    } finally {
      await app.close();
    }
  });
});

describeEachEngine('EVENTS-OPEN: a reader that is not slow', (engine) => {
  const publish = (app: RunningApp, turnIds: readonly string[]): void => {
    const events = turnIds.map((turnId) => ({ type: 'turn.started', taskId: 't', sessionId: 's', turnId }) as const);
    app.app.get(EventBus).publish(events);
  };

  it('is told to look again when more is published during one look than is kept, and stays', async () => {
    let look: () => void | Promise<void> = () => undefined;
    const app = await startApp(
      { url: await engine.createUrl() },
      { ...withSettings({ replayEvents: 10 }), wrapReader: (inner) => readerWith(inner, () => look()) },
    );
    try {
      const stream = await EventClient.open(app.url);
      let release: () => void = () => undefined;
      const isHeld = new Promise<void>((resolve) => (release = resolve));
      const isLooking = new Promise<void>((resolve) => {
        look = () => {
          resolve();
          return isHeld;
        };
      });
      publish(app, ['first']);
      await isLooking;
      for (let count = 0; count < 5_000; count += 1) publish(app, [`${count}`]);
      release();
      await stream.event('resync');
      publish(app, ['last']);
      await stream.event('turn.started', { turn_id: 'last' });
      expect(stream.events.map(({ id, type }) => [id, type])).toEqual([
        ['1-5001', 'resync'],
        ['1-5002', 'turn.started'],
      ]);
      expect(app.logged.map(({ event }) => event)).not.toContain('events.reader_dropped');
      await stream.close();
    } finally {
      await app.close();
    }
  });

  it('leaves in the middle of a long replay, and nobody else notices', async () => {
    const app = await startApp({ url: await engine.createUrl() });
    try {
      publish(
        app,
        Array.from({ length: 4_000 }, (_, index) => `${index} ${'x'.repeat(500)}`),
      );
      const open = () => EventClient.open(app.url, { lastEventId: '1-0' });
      const [stays, ...leaving] = await Promise.all([open(), open(), open(), open()]);
      await Promise.all(leaving.map((stream) => stream.close()));
      await until(() => stays?.events.length === 4_000);
      await until(async () => (await clientsShown(app)) === '1');
      await stays?.close();
    } finally {
      await app.close();
    }
  });
});

describeEngine('postgres', 'EVENTS-OPEN: while the database is away', (engine) => {
  it('streams stay, and what is published then is told without what could not be read', async () => {
    const proxy = await cuttingProxy(await engine.createUrl());
    const app = await startApp({ url: proxy.url }, withSettings({ heartbeatMs: 20 }));
    try {
      const stream = await EventClient.open(app.url);
      const rest = new RestCaller(app.url);
      const { taskId, sessionId } = await makeEstate(rest);
      proxy.goDown();
      const beats = stream.comments.length;
      app.app.get(EventBus).publish([{ type: 'turn.completed', taskId, sessionId, turnId: 'while away' }]);
      const { data } = await stream.event('turn.completed', { turn_id: 'while away' });
      expect(data).not.toHaveProperty('pending_action');
      await until(() => stream.comments.length > beats + 3);
      proxy.comeUp();
      await until(async () => (await rest.get('/health/ready')).status === 200);
      await rest.make('POST', `/task-sessions/${sessionId}/messages`, { content: 'Back again' });
      expect((await stream.event('session.message.added', { pending_action: 'clarification' })).id).toMatch(/^1-/);
      await stream.close();
    } finally {
      await app.close();
      await proxy.close();
    }
  });
});

describeEachEngine('EVENTS-OPEN: the end of a connection', (engine) => {
  it('MCP-REVOKED: a stream ends when its token is revoked, replaced or expires, and those of others go on', async () => {
    const app = await startApp({ url: await engine.createUrl() }, { authMode: 'enforced' });
    try {
      const accounts = app.app.get(Accounts);
      const tokenOf = (userName: string, lifetimeMs: number | null) =>
        accounts.createToken({ userName, name: '', lifetimeMs }, Deadline.after(10_000));
      const { name, token } = await app.createUser();
      const rest = new RestCaller(app.url, token);
      const { sessionId, agentToken } = await makeEstate(rest);
      const [revoked, expiring] = [await tokenOf(name, null), await tokenOf(name, 1_500)];
      const open = (by: string) => EventClient.open(app.url, { token: by });
      const kept = await open(token);
      const ending = await Promise.all([revoked.token, expiring.token, agentToken].map(open));
      await accounts.revokeToken(revoked.id, Deadline.after(10_000));
      const renewed = await rest.make('POST', `/task-sessions/${sessionId}/agent-token`);
      const agents = await open(renewed.agent_token);
      expect(await Promise.all(ending.map((stream) => stream.end()))).toEqual(['whole', 'whole', 'whole']);
      await rest.make('POST', `/task-sessions/${sessionId}/messages`, { content: 'Still here?' });
      await Promise.all([kept.event('session.message.added'), agents.event('session.message.added')]);
    } finally {
      await app.close();
    }
  });

  it('SHUTDOWN: streams end with the server, which does not wait for one that nobody reads', async () => {
    const app = await startApp({ url: await engine.createUrl() }, { env: { SHUTDOWN_GRACE_MS: '60000' } });
    const streams = await Promise.all([EventClient.open(app.url), EventClient.open(app.url)]);
    const deaf = await DeafClient.open(app);
    await flood(app, () => deaf.isBlocked);
    await app.close();
    expect(await Promise.all(streams.map((stream) => stream.end()))).toEqual(['whole', 'whole']);
    expect(app.logged.map(({ event }) => event)).not.toContain('server.requests_cut');
    deaf.close();
  });
});

describeEngine('sqlite', 'EVENTS-OPEN: a client that does not read', (engine) => {
  it('is dropped once what it would need is gone, with next to nothing kept for it; others are served', async () => {
    const app = await startApp({ url: await engine.createUrl() }, withSettings({ replayEvents: 400 }));
    try {
      const [reader, deaf] = [await EventClient.open(app.url), await DeafClient.open(app)];
      await flood(app, () => deaf.isGone, reader);
      expect(deaf.mostKept).toBeLessThan(128 * 1024);
      expect(app.logged.filter(({ event }) => event === 'events.reader_dropped')).toHaveLength(1);
      expect(reader.ended).toBeUndefined();
      expect(reader.types).not.toContain('resync');
      await until(async () => (await clientsShown(app)) === '1');
      await reader.close();
    } finally {
      await app.close();
    }
  });

  it('is dropped when it takes nothing for several heartbeats, though nothing new happens', async () => {
    const app = await startApp({ url: await engine.createUrl() }, withSettings({ heartbeatMs: 20, patience: 5 }));
    try {
      const deaf = await DeafClient.open(app);
      await flood(app, () => deaf.isBlocked || deaf.isGone);
      await until(() => deaf.isGone);
      expect(app.logged.filter(({ event }) => event === 'events.reader_dropped')).toHaveLength(1);
    } finally {
      await app.close();
    }
  });

  it('and begins to in time gets everything', async () => {
    const app = await startApp({ url: await engine.createUrl() }, withSettings({ replayEvents: 100_000 }));
    try {
      const [reader, deaf] = [await EventClient.open(app.url), await DeafClient.open(app)];
      await flood(app, () => deaf.isBlocked, reader);
      deaf.listen();
      await until(() => deaf.heard.includes(`id: ${reader.lastEventId}\n`));
      const ids = [...deaf.heard.matchAll(/^id: 1-(\d+)\nevent/gm)].map(([, id]) => Number(id));
      expect(ids).toEqual(ids.map((_, index) => index + 1));
      deaf.close();
    } finally {
      await app.close();
    }
  });
});

/** Opens a stream and reads nothing of it. */
class DeafClient {
  heard = '';
  mostKept = 0;

  private constructor(
    private readonly socket: Socket,
    private readonly served: Socket,
  ) {}

  static async open(app: RunningApp): Promise<DeafClient> {
    const server = app.app.getHttpServer();
    const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
    socket.pause();
    socket.on('error', () => undefined);
    socket.write('GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const deaf = new DeafClient(socket, await accepted);
    await until(() => deaf.served.bytesWritten > 0);
    return deaf;
  }

  /** Bytes wait in the server because the kernel takes no more. */
  get isBlocked(): boolean {
    this.mostKept = Math.max(this.mostKept, this.served.writableLength);
    return this.served.writableLength > 16 * 1024;
  }

  get isGone(): boolean {
    this.mostKept = Math.max(this.mostKept, this.served.writableLength);
    return this.served.destroyed;
  }

  listen(): void {
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text: string) => (this.heard += text));
    this.socket.resume();
  }

  close(): void {
    this.socket.destroy();
  }
}

/** Publishes until the condition holds, no faster than a client that reads takes it. */
async function flood(app: RunningApp, isEnough: () => boolean, reader?: EventClient): Promise<void> {
  const bus = app.app.get(EventBus);
  const pace = reader ?? (await EventClient.open(app.url));
  for (let wave = 0; !isEnough(); wave += 1) {
    expect(wave).toBeLessThan(200);
    // Long, because the kernel takes several megabytes before it refuses any.
    const turnId = `${wave} ${'x'.repeat(2_000)}`;
    for (let count = 0; count < 200; count += 1) {
      bus.publish([{ type: 'turn.started', taskId: 'a task', sessionId: 'a session', turnId }]);
    }
    await pace.event('turn.started', { turn_id: turnId });
    await until(() => pace.events.length >= 200 * (wave + 1));
    // A blocked socket needs a moment to be seen to be one.
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (reader === undefined) await pace.close();
}
