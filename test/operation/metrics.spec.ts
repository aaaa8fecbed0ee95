import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { Metrics } from '../../src/observability/metrics.js';
import { startApp, type RunningApp, type StartAppOptions } from '../support/app.js';
import { McpCaller, RestCaller } from '../support/callers.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, ask, makeEstate } from '../support/estate.js';
import { readerWith } from '../support/reader-with.js';
import { scrape } from '../support/scrape.js';
import { Stage } from '../support/stage.js';
import { until } from '../support/until.js';

describeEachEngine('METRICS', (engine) => {
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

  it('counts who won by outcome and surface, who came later, and how long claims and hand-overs took', async () => {
    const rest = await start();
    const mcp = await McpCaller.open(app.url);
    const respond = (pendingId: string, outcome: object) => rest.post(`/clarification/${pendingId}/respond`, outcome);
    const [one, two, three] = [await makeEstate(rest), await makeEstate(rest), await makeEstate(rest)];
    const before = await scrape(app.url);
    await respond(one.pendingId, answersTo(['q1']));
    await respond(one.pendingId, answersTo(['q1'], 'too late'));
    await mcp.call('answer_question_kandev', { pending_id: one.pendingId, rejected: true });
    await respond(two.pendingId, { rejected: true });
    await mcp.call('answer_question_kandev', { pending_id: three.pendingId, ...answersTo(['q1']) });
    // Neither claims anything.
    await respond(three.pendingId, answersTo(['no such question']));
    await respond('nobody-asked-this', answersTo(['q1']));
    const after = await scrape(app.url);
    const grown = Object.fromEntries(
      [...after]
        .filter(([name]) => /^clarification_(resolutions|lost|response_timeout|\w+_duration_seconds_count)/.test(name))
        .map(([name, value]) => [name, value - (before.get(name) ?? NaN)]),
    );
    expect(grown).toEqual({
      'clarification_resolutions_total{outcome="answered",surface="rest"}': 1,
      'clarification_resolutions_total{outcome="rejected",surface="rest"}': 1,
      'clarification_resolutions_total{outcome="answered",surface="mcp"}': 1,
      'clarification_resolutions_total{outcome="rejected",surface="mcp"}': 0,
      'clarification_lost_responses_total{surface="rest"}': 1,
      'clarification_lost_responses_total{surface="mcp"}': 1,
      clarification_claim_duration_seconds_count: 5,
      clarification_delivery_duration_seconds_count: 3,
      'clarification_response_timeout_total{phase="identity"}': 0,
      'clarification_response_timeout_total{phase="claim"}': 0,
      'clarification_response_timeout_total{phase="delivery"}': 0,
    });
  });

  it('counts a claim that was undone not at all', async () => {
    const stage = new Stage();
    const rest = await start({ wrap: stage.wrap });
    const { pendingId } = await makeEstate(rest);
    const answered = async () =>
      (await scrape(app.url)).get('clarification_resolutions_total{outcome="answered",surface="rest"}');
    stage.fail('delivery.hand-over', 'commit', new Error('placed by hand'));
    const undone = await rest.post(`/clarification/${pendingId}/respond`, answersTo(['q1']));
    expect([undone.status, undone.json.retryable]).toEqual([500, true]);
    expect(await answered()).toBe(0);
    expect((await rest.post(`/clarification/${pendingId}/respond`, answersTo(['q1']))).status).toBe(200);
    expect(await answered()).toBe(1);
  });

  it('shows who waits, and how many bundles are open, as the listing has them', async () => {
    const rest = await start({ authMode: 'enforced' });
    const { token } = await app.createUser();
    const user = new RestCaller(rest.url, token);
    const estate = await makeEstate(user);
    const agent = new RestCaller(rest.url, estate.agentToken);
    await ask(agent, estate.sessionId, ['q1', 'q2'], 'a second one');
    const gone = new AbortController();
    const waits = [agent, user, user].map((caller) =>
      caller.send('GET', `/clarification/${estate.pendingId}/wait`, undefined, gone.signal).catch(() => undefined),
    );
    const roles = async () => {
      const samples = await scrape(app.url, token);
      return ['agent', 'observer'].map((role) => samples.get(`clarification_active_waiters{role="${role}"}`));
    };
    await until(async () => String(await roles()) === '1,2');
    const bundles = async () => (await scrape(app.url, token)).get('clarification_active_bundles');
    const before = (await bundles()) ?? NaN;
    await user.make('POST', `/clarification/${estate.pendingId}/respond`, answersTo(['q1']));
    expect(await bundles()).toBe(before - 1);
    expect(await roles()).toEqual([0, 0]);
    gone.abort();
    await Promise.all(waits);
    // Superseded bundles are no longer open.
    await user.make('POST', `/task-sessions/${estate.sessionId}/turns`, {});
    expect(await bundles()).toBe(before - 2);
  });

  it('shows work that waits for a connection while all are taken, and for how long it did', async () => {
    const stage = new Stage();
    const rest = await start({ wrap: stage.wrap, env: { POOL_SIZE: '2' } });
    const taken = Array.from({ length: engine.name === 'sqlite' ? 1 : 2 }, () => {
      const held = stage.hold('workspace.create', 'commit');
      return { held, made: rest.post('/workspaces', { name: 'Before' }) };
    });
    await Promise.all(taken.map(({ held }) => held.reached));
    const before = (await scrape(app.url)).get('database_wait_seconds_count{use="write"}') ?? NaN;
    const last = rest.post('/workspaces', { name: 'Behind them' });
    await until(async () => (await scrape(app.url)).get('database_waiting{use="write"}') === 1);
    for (const { held } of taken) held.release();
    for (const made of [...taken.map((each) => each.made), last]) expect((await made).status).toBe(201);
    const after = await scrape(app.url);
    expect(after.get('database_waiting{use="write"}')).toBe(0);
    expect(after.get('database_wait_seconds_count{use="write"}')).toBe(before + 1);
    expect(after.get('database_wait_seconds_sum{use="write"}')).toBeGreaterThan(0);
    expect(after.get('database_wait_seconds_count{use="read"}')).toBeGreaterThan(0);
  });

  it('shows how many turns are still to be sent to a webhook', async () => {
    const rest = await start();
    const { turnId } = await makeEstate(rest);
    expect((await scrape(app.url)).get('turn_dispatches_owed')).toBe(0);
    await database.sql(`UPDATE task_session_turns SET dispatch = 'owed' WHERE id = $1`, [turnId]);
    expect((await scrape(app.url)).get('turn_dispatches_owed')).toBe(1);
    await database.sql(`UPDATE task_session_turns SET dispatch = '' WHERE id = $1`, [turnId]);
  });

  it('leaves out what the database would have to say while it is away, and shows the rest', async () => {
    let isAway = false;
    await start({
      wrapReader: (reader) =>
        readerWith(reader, (_, deadline) => {
          if (isAway) throw deadline.expiry();
        }),
    });
    const there = await scrape(app.url);
    isAway = true;
    const away = await scrape(app.url);
    expect([...there.keys()].filter((name) => !away.has(name))).toEqual(
      expect.arrayContaining(['clarification_active_bundles', 'turn_dispatches_owed']),
    );
    expect(away.get('process_resident_memory_bytes')).toBeGreaterThan(0);
    isAway = false;
    expect((await scrape(app.url)).has('clarification_active_bundles')).toBe(true);
  });

  it('labels nothing with an id, whatever has happened', async () => {
    const rest = await start({ authMode: 'enforced' });
    const user = await app.createUser('somebody-by-name');
    const caller = new RestCaller(rest.url, user.token);
    const estate = await makeEstate(caller);
    const mcp = await McpCaller.open(app.url, '/mcp', user.token);
    await caller.get('/clarification/no-such-bundle/wait?timeout=0');
    await caller.post('/clarification/no-such-bundle/respond', answersTo(['q1']));
    await new RestCaller(rest.url, 'no-such-token').get('/tasks');
    await caller.post(`/clarification/${estate.pendingId}/respond`, answersTo(['q1']));
    await mcp.call('answer_question_kandev', { pending_id: estate.pendingId, rejected: true });
    await caller.get(`/clarification/${estate.pendingId}/wait`);
    const metrics = await app.app.get(Metrics).registry.getMetricsAsJSON();
    const labels = metrics.flatMap(({ name, values }) => values.map((value) => ({ name, labels: value.labels })));
    expect(labels.length).toBeGreaterThan(50);
    const ids = [...Object.values(estate), user.id, user.name, 'no-such-bundle', 'no-such-token'].filter(
      (id) => id !== '',
    );
    const shown = JSON.stringify(metrics);
    expect(ids.filter((id) => shown.includes(id))).toEqual([]);
    // Nor anything that could be one: every label of ours has few values, which are words.
    const ours = labels.filter(({ name }) => !/^(process|nodejs)_/.test(name));
    const names = new Set(ours.flatMap(({ labels: each }) => Object.keys(each)));
    expect([...names].filter((name) => !KNOWN_LABELS.has(name))).toEqual([]);
    expect(
      ours.filter(({ labels: each }) => Object.values(each).some((value) => /[0-9a-f]{8}/.test(String(value)))),
    ).toEqual([]);
  });
});

/** `le` is the bound of a histogram's bucket. */
const KNOWN_LABELS = new Set(['outcome', 'surface', 'phase', 'role', 'use', 'le']);
