import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { Sizes } from '../../bench/crowds/crowd.js';
import { CROWDS, type CrowdName } from '../../bench/crowds/crowds.js';
import { World, type User } from '../../bench/crowds/world.js';
import { startApp, type RunningApp } from '../support/app.js';
import { RestCaller } from '../support/callers.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';

/** Small enough for every run of the tests, large enough to be a crowd. */
const SIZES: Sizes = {
  rounds: 1,
  sessions: 10,
  waiters: 60,
  streams: 20,
  streamSeconds: 1,
  asksPerSecond: 50,
  askSeconds: 1,
  overloadSeconds: 1,
  overloadCallers: 80,
  overloadWaits: 20,
  overloadStreams: 10,
  limitedRequests: 200,
};
/** Nothing here is about time; a machine that has others to serve takes some. */
const TIME_LIMIT_MS = 180_000;
/** However slow the machine, everybody is served in the end. */
const PATIENT: NodeJS.ProcessEnv = { PRE_CLAIM_BUDGET_MS: '60000' };

// The crowds of npm run bench:crowds, which say themselves what must not be.
describeEachEngine('crowds over HTTP', (engine) => {
  let database: TestDatabase;
  let app: RunningApp | undefined;
  let settings: NodeJS.ProcessEnv | undefined;
  let world: World | undefined;
  let users: User[] = [];

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  afterEach(() => world?.rest.close());
  afterAll(() => app?.close());

  /** Crowds that need the same settings follow each other on one server, as in the bench. */
  async function serverWith(env: NodeJS.ProcessEnv): Promise<RunningApp> {
    if (app !== undefined && settings === env) return app;
    await app?.close();
    app = undefined;
    app = await startApp(database, { env: { REATTACH_MS: '0', ...env } });
    settings = env;
    return app;
  }

  async function faultsOf(name: CrowdName, env = PATIENT): Promise<readonly string[]> {
    const running = await serverWith(env);
    if (users.length === 0) users = [await userOf(running), await userOf(running)];
    world = new World(running.url, users);
    const memory = () => Promise.resolve({ heapBytes: 0, rssBytes: 0 });
    return (await CROWDS[name]({ world, sizes: SIZES, memory })).faults;
  }

  async function userOf(running: RunningApp): Promise<User> {
    const { name, token } = await running.createUser();
    const { id } = await new RestCaller(running.url, token).make('POST', '/workspaces', { name });
    return { token, workspaceId: id };
  }

  it(
    'R3: of 64 callers of one bundle one wins and all are told the same, with an agent that waits and without',
    async () => {
      expect(await faultsOf('one-bundle')).toEqual([]);
    },
    TIME_LIMIT_MS,
  );

  it(
    'R1: 64 callers of a bundle each all win',
    async () => {
      expect(await faultsOf('many-bundles')).toEqual([]);
    },
    TIME_LIMIT_MS,
  );

  it(
    'WAIT-ACTIVE/DETACH: many agents wait, some leave at once, the others each get their own answer',
    async () => {
      expect(await faultsOf('waiters')).toEqual([]);
    },
    TIME_LIMIT_MS,
  );

  it(
    'WAIT-ACTIVE: many wait for one bundle and one answer reaches them all',
    async () => {
      expect(await faultsOf('waiters-on-one')).toEqual([]);
    },
    TIME_LIMIT_MS,
  );

  it(
    'EVENTS-WHO: dozens of streams each hear exactly what they may, in order',
    async () => {
      expect(await faultsOf('streams')).toEqual([]);
    },
    TIME_LIMIT_MS,
  );

  it(
    'CREATE-DEDUP: questions that keep arriving each make a bundle',
    async () => {
      expect(await faultsOf('asks')).toEqual([]);
    },
    TIME_LIMIT_MS,
  );

  it(
    'BUDGET: too much at once is served, or refused with when to come back, claims nothing that was refused, and leaves nothing',
    async () => {
      expect(await faultsOf('overload', { PRE_CLAIM_BUDGET_MS: '400' })).toEqual([]);
    },
    TIME_LIMIT_MS,
  );

  it(
    'BUDGET: beyond its share a caller gets 429 while others, and health, are served',
    async () => {
      expect(await faultsOf('rate-limit', { RATE_LIMIT_PER_MINUTE: '150' })).toEqual([]);
    },
    TIME_LIMIT_MS,
  );
});
