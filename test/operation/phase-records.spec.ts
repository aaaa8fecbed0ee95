import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { TemporarilyUnavailableError } from '../../src/common/domain-error.js';
import { startApp, type RunningApp, type StartAppOptions } from '../support/app.js';
import { McpCaller, RawBody, RestCaller } from '../support/callers.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, makeEstate } from '../support/estate.js';
import { readerWith } from '../support/reader-with.js';
import { scrape } from '../support/scrape.js';
import { Stage } from '../support/stage.js';

const EVENT = 'clarification.response.phase';

describeEachEngine('PHASE-RECORDS', (engine) => {
  let database: TestDatabase;
  let app: RunningApp;
  beforeAll(async () => {
    database = await engine.createDatabase();
  });
  afterEach(() => app.close());

  async function start(options: StartAppOptions = {}) {
    app = await startApp(database, options);
    return new RestCaller(app.url);
  }

  const records = () => app.logged.filter(({ event }) => event === EVENT);
  /** What was recorded during an act, as `phase outcome`. */
  async function during(act: () => Promise<unknown>): Promise<string[]> {
    const before = records().length;
    await act();
    return records()
      .slice(before)
      .map(({ phase, outcome }) => `${String(phase)} ${String(outcome)}`);
  }
  const respond = (caller: RestCaller, pendingId: string, outcome: unknown = answersTo(['q1'])) =>
    caller.post(`/clarification/${pendingId}/respond`, outcome);
  const timeouts = async (phase: string) =>
    (await scrape(app.url)).get(`clarification_response_timeout_total{phase="${phase}"}`);

  it('has one for each phase of an answer: how long it took, what came of it, the database, the bundle, the request, who and through what', async () => {
    await start({ authMode: 'enforced' });
    const user = await app.createUser();
    const rest = new RestCaller(app.url, user.token);
    const [one, two] = [await makeEstate(rest), await makeEstate(rest)];
    const answered = await respond(rest, one.pendingId);
    const mcp = await McpCaller.open(app.url, '/mcp', user.token);
    await mcp.call('answer_question_kandev', { pending_id: two.pendingId, rejected: true });
    const expected = (surface: string, pendingId: string, requestId: unknown) =>
      ['identity', 'claim', 'delivery'].map((phase) => ({
        level: 'info',
        time: expect.any(String),
        event: EVENT,
        phase,
        outcome: 'ok',
        duration_ms: expect.any(Number),
        driver: engine.name,
        pending_id: pendingId,
        request_id: requestId,
        actor: `user:${user.id}`,
        surface,
      }));
    expect(records()).toEqual([
      ...expected('rest', one.pendingId, answered.headers.get('x-request-id')),
      ...expected('mcp', two.pendingId, expect.stringMatching(/^[0-9a-f-]{36}$/)),
    ]);
  });

  it('says who came later, and to what could no longer be answered, on both surfaces', async () => {
    const rest = await start();
    const mcp = await McpCaller.open(app.url);
    const overMcp = (pendingId: string) =>
      mcp.call('answer_question_kandev', { pending_id: pendingId, ...answersTo(['q1']) });
    const { pendingId } = await makeEstate(rest);
    await respond(rest, pendingId);
    expect(await during(() => respond(rest, pendingId))).toEqual(['identity ok', 'claim lost']);
    expect(await during(() => overMcp(pendingId))).toEqual(['identity ok', 'claim lost']);
    const cancelled = await makeEstate(rest);
    await rest.make('POST', `/clarification/${cancelled.pendingId}/cancel`);
    expect(await during(() => respond(rest, cancelled.pendingId))).toEqual(['identity ok', 'claim not_active']);
    expect(await during(() => overMcp(cancelled.pendingId))).toEqual(['identity ok', 'claim not_active']);
  });

  it('A3: is the same for foreign, missing and malformed bundles, though the guard refuses them', async () => {
    await start({ authMode: 'enforced' });
    const [ada, bob] = [await app.createUser(), await app.createUser()];
    const { pendingId } = await makeEstate(new RestCaller(app.url, ada.token));
    const rest = new RestCaller(app.url, bob.token);
    const mcp = await McpCaller.open(app.url, '/mcp', bob.token);
    for (const id of [pendingId, 'no-such-bundle', '%00', 'x'.repeat(500)]) {
      expect(await during(() => respond(rest, id))).toEqual(['identity not_found']);
    }
    for (const id of [pendingId, 'no-such-bundle']) {
      expect(await during(() => mcp.call('answer_question_kandev', { pending_id: id, ...answersTo(['q1']) }))).toEqual([
        'identity not_found',
      ]);
    }
    const shapes = records().map((record) => JSON.stringify([Object.keys(record).sort(), record['actor']]));
    expect(new Set(shapes).size).toBe(1);
    expect(Math.max(...records().map((record) => String(record['pending_id']).length))).toBeLessThan(130);
  });

  it('says that what was sent is invalid, wherever that was seen', async () => {
    const rest = await start();
    const { pendingId } = await makeEstate(rest);
    const refused: [string, unknown][] = [
      ['', { answers: [] }],
      ['', { answer: 'misspelt' }],
      ['?unknown=1', answersTo(['q1'])],
      ['', new RawBody('{"answers":')],
      ['', new RawBody('answers', 'text/plain')],
      ['', new RawBody(JSON.stringify({ reject_reason: 'x'.repeat(3_000_000) }))],
    ];
    for (const [query, body] of refused) {
      const path = `/clarification/${pendingId}/respond${query}`;
      expect([query, await during(() => rest.post(path, body))]).toEqual([query, ['identity invalid']]);
    }
  });

  it('has none for what is no response: whoever may not respond, and other requests about a bundle', async () => {
    await start({ authMode: 'enforced' });
    const user = await app.createUser();
    const rest = new RestCaller(app.url, user.token);
    const { pendingId, agentToken } = await makeEstate(rest);
    expect(
      await during(async () => {
        expect((await respond(new RestCaller(app.url), pendingId)).status).toBe(401);
        expect((await respond(new RestCaller(app.url, agentToken), pendingId)).status).toBe(403);
        expect((await rest.get('/clarification/no-such-bundle')).status).toBe(404);
        expect((await rest.get('/clarification/no-such-bundle/respond')).status).toBe(404);
        expect((await rest.post('/clarification/no-such-bundle/cancel')).status).toBe(404);
      }),
    ).toEqual([]);
  });

  it('counts into the identity phase what authentication and the guard take', async () => {
    let delayed = '';
    await start({
      authMode: 'enforced',
      wrapReader: (reader) =>
        readerWith(reader, async (sql) => {
          if (delayed !== '' && sql.includes(delayed)) await pause(60);
        }),
    });
    const rest = new RestCaller(app.url, (await app.createUser()).token);
    for (const table of ['access_tokens', 'task_session_messages']) {
      const { pendingId } = await makeEstate(rest);
      delayed = table;
      await respond(rest, pendingId);
      delayed = '';
      const [identity] = records().filter(({ pending_id: id }) => id === pendingId);
      expect(identity).toMatchObject({ phase: 'identity', outcome: 'ok' });
      expect(identity?.['duration_ms']).toBeGreaterThanOrEqual(59);
    }
  });

  it('BUDGET: says in which phase the budget was spent, and counts it there', async () => {
    let away = '';
    const stage = new Stage();
    await start({
      authMode: 'enforced',
      wrap: stage.wrap,
      wrapReader: (reader) =>
        readerWith(reader, (sql, deadline) => {
          if (away !== '' && sql.includes(away)) throw deadline.expiry();
        }),
    });
    const rest = new RestCaller(app.url, (await app.createUser()).token);
    const { pendingId } = await makeEstate(rest);
    const spent = async (place: () => void) => {
      const recorded = await during(async () => {
        place();
        expect((await respond(rest, pendingId)).status).toBe(503);
      });
      away = '';
      return [recorded, records().at(-1)?.['actor'] === 'unknown'];
    };
    expect(await spent(() => (away = 'access_tokens'))).toEqual([['identity timeout'], true]);
    expect(await spent(() => (away = 'task_session_messages'))).toEqual([['identity timeout'], false]);
    expect(
      await spent(() => stage.fail('bundle.claim', 'begin', new TemporarilyUnavailableError('placed by hand'))),
    ).toEqual([['identity ok', 'claim timeout'], false]);
    expect([await timeouts('identity'), await timeouts('claim')]).toEqual([2, 1]);
  });

  it('RESTORE: says that a hand-over failed and the bundle is open again, and counts it if time ran out', async () => {
    const stage = new Stage();
    const rest = await start({ wrap: stage.wrap });
    const { pendingId } = await makeEstate(rest);
    const handOver = async (error: Error) =>
      during(async () => {
        stage.fail('delivery.hand-over', 'commit', error);
        expect((await respond(rest, pendingId)).status).toBe(500);
      });
    const restored = ['identity ok', 'claim ok', 'delivery restored'];
    expect(await handOver(new Error('placed by hand'))).toEqual(restored);
    expect(await timeouts('delivery')).toBe(0);
    expect(await handOver(new TemporarilyUnavailableError('placed by hand'))).toEqual(restored);
    expect(await timeouts('delivery')).toBe(1);
    expect(await during(() => respond(rest, pendingId))).toEqual(['identity ok', 'claim ok', 'delivery ok']);
  });
});
