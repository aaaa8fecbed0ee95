import { rename } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, expect, it } from '@jest/globals';
import pg from 'pg';
import type { UnitOfWork } from '../../src/persistence/unit-of-work.js';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller } from '../support/callers.js';
import { cuttingProxy, type CuttingProxy } from '../support/cutting-proxy.js';
import { dumpOf } from '../support/dump.js';
import { describeEachEngine, describeEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, makeEstate, type Estate } from '../support/estate.js';
import { questionOf } from '../support/question.js';
import { readerWith } from '../support/reader-with.js';
import { scrape } from '../support/scrape.js';
import { until } from '../support/until.js';

const UNAVAILABLE = 'the service is temporarily unavailable; send the same request again';
const COMMIT_LOST = 'the connection to the database was lost before it had confirmed; send the same request again';

const isReady = async (rest: RestCaller) => (await rest.get('/health/ready')).status === 200;

/** Ends every connection that the service has, its lock's too, as an administrator or a restart does. */
async function endConnections(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'administrator' });
  await client.connect();
  await client.query(
    `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name LIKE 'clarion%'`,
  );
  await client.end();
}

/** A connection that was ended shows when it is used next. */
async function estateOnceBack(rest: RestCaller): Promise<Estate> {
  const made: Estate[] = [];
  await until(async () => {
    await makeEstate(rest).then(
      (estate) => made.push(estate),
      (error: unknown) => expect(String(error)).toContain(': 503 '),
    );
    return made.length > 0;
  });
  return made[0] as Estate;
}

/** Does something at one crossing into the database, counted from when it is armed. */
class Crossings {
  private left = -1;
  private act: () => Promise<void> = async () => undefined;

  /** @param at 0 for the next one */
  arm(at: number, act: () => Promise<void>): void {
    this.left = at;
    this.act = act;
  }

  /** Whether it has come to that. */
  get isOver(): boolean {
    return this.left < 0;
  }

  async cross(): Promise<void> {
    if (this.left < 0) return;
    this.left -= 1;
    if (this.left < 0) await this.act();
  }

  readonly wrap = (inner: UnitOfWork): UnitOfWork => {
    const run: UnitOfWork['run'] = async (name, deadline, work) => {
      await this.cross();
      return inner.run(name, deadline, async (tx) => {
        const value = await work({
          dialect: tx.dialect,
          deadline: tx.deadline,
          query: async (sql, params) => {
            await this.cross();
            return tx.query<never>(sql, params);
          },
        });
        // Before COMMIT.
        await this.cross();
        return value;
      });
    };
    return Object.assign(Object.create(inner) as UnitOfWork, { run });
  };
}

describeEngine('postgres', 'DATABASE-AWAY: a connection that is dropped', (engine) => {
  let app: RunningApp | undefined;
  let proxy: CuttingProxy | undefined;
  afterEach(async () => {
    await app?.close();
    await proxy?.close();
    app = proxy = undefined;
  });

  async function start(database: TestDatabase) {
    const crossings = new Crossings();
    app = await startApp(database, {
      wrap: crossings.wrap,
      wrapReader: (reader) => readerWith(reader, () => crossings.cross()),
    });
    return { rest: new RestCaller(app.url), crossings };
  }

  it('at any statement of asking is a 503 that has written nothing, and the same request then asks once', async () => {
    const database = await engine.createDatabase();
    const { rest, crossings } = await start(database);
    const { sessionId } = await makeEstate(rest);
    const counts = async (): Promise<number> => (await dumpOf(database))['task_session_messages']?.length ?? 0;
    let at = 0;
    for (let isPast = false; !isPast; at += 1) {
      const request = { session_id: sessionId, questions: ['a', 'b'].map(questionOf), context: `at ${at}` };
      const before = await dumpOf(database);
      crossings.arm(at, () => endConnections(database.url));
      const asked = await rest.post('/clarification/request', request);
      isPast = !crossings.isOver;
      if (isPast) {
        expect(asked.status).toBe(200);
        break;
      }
      // Where the pool had no connection yet, or has made another one, nothing was lost.
      if (asked.status !== 200) {
        expect([asked.status, asked.headers.get('retry-after'), asked.json]).toEqual([
          503,
          '1',
          { error: UNAVAILABLE, code: 'temporarily_unavailable' },
        ]);
        expect(await dumpOf(database)).toEqual(before);
      }
      const rows = before['task_session_messages']?.length ?? 0;
      await until(async () => (await rest.post('/clarification/request', request)).status === 200);
      expect(await counts()).toBe(rows + 2);
    }
    // The look-ups, BEGIN, the statements of the transaction, COMMIT.
    expect(at).toBeGreaterThan(5);
  });

  it('at any statement of answering leaves the bundle open or answered and handed over, and the same request finds out', async () => {
    const database = await engine.createDatabase();
    const { rest, crossings } = await start(database);
    let at = 0;
    for (let isPast = false; !isPast; at += 1) {
      const { pendingId } = await estateOnceBack(rest);
      crossings.arm(at, () => endConnections(database.url));
      const answered = await rest.post(`/clarification/${pendingId}/respond`, answersTo(['q1'], 'mine'));
      isPast = !crossings.isOver;
      crossings.arm(-1, async () => undefined);
      expect([200, 500, 503]).toContain(answered.status);
      if (answered.status === 500) expect(answered.json.retryable).toBeDefined();
      await until(async () => {
        const again = await rest.post(`/clarification/${pendingId}/respond`, answersTo(['q1'], 'mine'));
        return again.status === 200 && again.json.delivered && again.json.response.answers[0].custom_text === 'mine';
      });
    }
    expect(at).toBeGreaterThan(8);
  });

  it('R4a: after COMMIT was sent is a 503 too, and the whole bundle is there for the same request to find', async () => {
    const database = await engine.createDatabase();
    proxy = await cuttingProxy(database.url);
    app = await startApp({ url: proxy.url });
    const rest = new RestCaller(app.url);
    const estate = await makeEstate(rest);
    const request = { session_id: estate.sessionId, questions: ['a', 'b'].map(questionOf), context: 'once' };
    const rows = async () => (await dumpOf(database))['task_session_messages']?.length ?? 0;
    const before = await rows();
    proxy.cutAfterSending('COMMIT\0');
    const lost = await rest.post('/clarification/request', request);
    expect([lost.status, lost.json]).toEqual([503, { error: COMMIT_LOST, code: 'temporarily_unavailable' }]);
    expect(await rows()).toBe(before + 2);
    const found = await rest.post('/clarification/request', request);
    expect(found.status).toBe(200);
    expect(await rows()).toBe(before + 2);
    // Over MCP it is the same.
    const mcp = await McpCaller.open(rest.url, `/mcp/sessions/${estate.sessionId}`);
    proxy.cutAfterSending('COMMIT\0');
    const ask = await mcp.call('ask_user_question_kandev', { questions: [questionOf('another')] });
    expect(ask).toMatchObject({ isError: true, text: `temporarily_unavailable: ${COMMIT_LOST}` });
  });

  it('HEALTH: makes the server not ready until the database is back, and everything works again by itself', async () => {
    const database = await engine.createDatabase();
    proxy = await cuttingProxy(database.url);
    app = await startApp({ url: proxy.url }, { env: { PRE_CLAIM_BUDGET_MS: '1000' } });
    const rest = new RestCaller(app.url);
    const { pendingId } = await makeEstate(rest);
    expect(await isReady(rest)).toBe(true);
    proxy.goDown();
    const refused = await rest.get('/health/ready');
    expect([refused.status, refused.json.error]).toEqual([503, 'not ready: database is down']);
    expect((await rest.get('/health/live')).status).toBe(200);
    const away = await Promise.all([
      rest.get('/clarification'),
      rest.post('/workspaces', { name: 'A' }),
      rest.post(`/clarification/${pendingId}/respond`, answersTo(['q1'])),
    ]);
    expect(away.map(({ status }) => status)).toEqual([503, 503, 503]);
    expect((await scrape(app.url)).has('clarification_active_bundles')).toBe(false);
    proxy.comeUp();
    await until(() => isReady(rest));
    expect((await rest.post(`/clarification/${pendingId}/respond`, answersTo(['q1']))).json).toMatchObject({
      claimed: true,
      delivered: true,
    });
  });
});

describeEngine('sqlite', 'DATABASE-AWAY: a file that is moved away', (engine) => {
  it('HEALTH: makes the server not ready until it is back in its place: what is written meanwhile would be lost', async () => {
    const database = await engine.createDatabase();
    const app = await startApp(database);
    try {
      const rest = new RestCaller(app.url);
      const file = database.url.slice('sqlite:'.length);
      expect(await isReady(rest)).toBe(true);
      await rename(file, `${file}.away`);
      const refused = await rest.get('/health/ready');
      expect([refused.status, refused.json.error]).toEqual([503, 'not ready: database is down']);
      expect((await rest.get('/health/live')).status).toBe(200);
      await rename(`${file}.away`, file);
      expect(await isReady(rest)).toBe(true);
    } finally {
      await app.close();
    }
  });
});

describeEachEngine('RECOVER-ORDER', (engine) => {
  it('HEALTH: nobody is let in before recovery is done', async () => {
    const database = await engine.createDatabase();
    const port = await freePort();
    const during: string[] = [];
    const app = await startApp(database, {
      env: { PORT: String(port) },
      wrapReader: (reader) =>
        readerWith(reader, async (sql) => {
          // What recovery reads.
          if (!sql.includes('response_delivery_pending')) return;
          const told = await fetch(`http://127.0.0.1:${port}/health/ready`).then(
            ({ status }) => String(status),
            () => 'refused',
          );
          during.push(told);
        }),
    });
    try {
      expect(during.length).toBeGreaterThan(0);
      expect(new Set(during)).toEqual(new Set(['refused']));
      expect(app.url).toBe(`http://127.0.0.1:${port}`);
      expect(await isReady(new RestCaller(app.url))).toBe(true);
    } finally {
      await app.close();
    }
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
