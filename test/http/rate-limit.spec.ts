import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { MinuteBudget } from '../../src/http/pipeline/minute-budget.js';
import { startApp } from '../support/app.js';
import { McpCaller, RestCaller } from '../support/callers.js';
import { describeEachEngine, describeEngine } from '../support/engines.js';
import { StatementRecorder } from '../support/statement-recorder.js';
import { startProbeApp } from './probe-app.js';
import type { ProbeApp } from './probe-app.js';

const LIST = '/api/v1/probe/list';

describe('RATE-LIMIT: requests a minute', () => {
  let probe: ProbeApp;
  afterEach(() => probe.close());

  async function start(env: NodeJS.ProcessEnv): Promise<void> {
    probe = await startProbeApp({ env: { AUTH_MODE: 'enforced', RATE_LIMIT_PER_MINUTE: '3', ...env } });
  }

  /** The statuses of so many requests, one after the other. */
  async function statuses(count: number, headers: Record<string, string> = {}, path = LIST): Promise<number[]> {
    const seen: number[] = [];
    for (let asked = 0; asked < count; asked += 1) seen.push((await probe.http.get(path).set(headers)).status);
    return seen;
  }

  const by = (token: string, forwardedFor?: string): Record<string, string> => ({
    Authorization: `Bearer ${token}`,
    ...(forwardedFor !== undefined && { 'X-Forwarded-For': forwardedFor }),
  });

  it('ERRORS: beyond the budget of a token are 429 with Retry-After, and say nothing else in their headers', async () => {
    await start({});
    expect(await statuses(3, by('user'))).toEqual([200, 200, 200]);
    const refused = await probe.http.get(LIST).set(by('user')).expect(429);
    expect(refused.body).toEqual({
      error: 'more than 3 requests in a minute with this token',
      code: 'too_many_requests',
    });
    const seconds = Number(refused.headers['retry-after']);
    expect(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60).toBe(true);
    expect(Object.keys(refused.headers).filter((name) => /rate-?limit/i.test(name))).toEqual([]);
  });

  it('are counted for each token by itself, two of one user included', async () => {
    await start({});
    expect(await statuses(4, by('user'))).toEqual([200, 200, 200, 429]);
    expect(await statuses(4, by('other'))).toEqual([200, 200, 200, 429]);
    expect(await statuses(4, by('user-second'))).toEqual([200, 200, 200, 429]);
  });

  it('with good tokens from one address have a budget too, whosever they are', async () => {
    await start({ RATE_LIMIT_PER_ADDRESS: '4' });
    expect(await statuses(3, by('user'))).toEqual([200, 200, 200]);
    expect(await statuses(2, by('other'))).toEqual([200, 429]);
    const refused = await probe.http.get(LIST).set(by('user-second')).expect(429);
    expect(refused.body.error).toBe('more than 4 requests in a minute from this address');
  });

  it('with bad tokens, each of them new, are refused after some, before the token is looked up', async () => {
    await start({});
    const seen: number[] = [];
    for (let guess = 0; guess < 6; guess += 1) seen.push(...(await statuses(1, by(`guess-${guess}`))));
    expect(seen).toEqual([401, 401, 401, 429, 429, 429]);
    expect(probe.lookUps()).toBe(3);
    const refused = await probe.http.get(LIST).set(by('guess-7')).expect(429);
    expect(refused.body.error).toBe('more than 3 requests in a minute without a valid token from this address');
  });

  it('without a token share that budget, so that leaving it out is no way around', async () => {
    await start({});
    expect(await statuses(2)).toEqual([401, 401]);
    expect(await statuses(1, { Authorization: 'Basic dXNlcjpwYXNz' })).toEqual([401]);
    expect(await statuses(1)).toEqual([429]);
    expect(await statuses(1, {}, '/')).toEqual([429]);
  });

  it('with a token that has been good go on while others at its address are guessing', async () => {
    await start({});
    expect(await statuses(1, by('user'))).toEqual([200]);
    for (let guess = 0; guess < 10; guess += 1) await statuses(1, by(`guess-${guess}`));
    expect(await statuses(2, by('user'))).toEqual([200, 200]);
    expect(await statuses(1, by('other'))).toEqual([429]);
  });

  it('with a new good token take nothing from those who have none', async () => {
    await start({});
    expect(await statuses(1, by('user'))).toEqual([200]);
    expect(await statuses(1, by('other'))).toEqual([200]);
    expect(await statuses(4)).toEqual([401, 401, 401, 429]);
  });

  it('with a token that has been good and no longer is count as guesses', async () => {
    await start({});
    expect(await statuses(1, by('user'))).toEqual([200]);
    probe.revoke('user');
    expect(await statuses(5, by('user'))).toEqual([401, 401, 401, 401, 429]);
  });

  it('that are sent at once are counted before any of them is looked up', async () => {
    await start({});
    const all = Array.from({ length: 20 }, (_, guess) => probe.http.get(LIST).set(by(`guess-${guess}`)));
    const seen = (await Promise.all(all)).map(({ status }) => status);
    expect([seen.filter((status) => status === 401).length, seen.filter((status) => status === 429).length]).toEqual([
      3, 17,
    ]);
    expect(probe.lookUps()).toBe(3);
  });

  it('for health are never refused, and a database that is slow is asked once for all who want to know', async () => {
    await start({});
    expect(await statuses(10, {}, '/health/live')).toEqual(new Array(10).fill(200));
    let pings = 0;
    let answer: () => void = () => undefined;
    const isAnswered = new Promise<void>((resolve) => (answer = resolve));
    probe.database.ping = () => {
      pings += 1;
      return isAnswered;
    };
    const asking = Array.from({ length: 10 }, () => probe.http.get('/health/ready').then(({ status }) => status));
    const last = probe.http.get('/health/live').then(() => answer());
    expect(await Promise.all(asking)).toEqual(new Array(10).fill(200));
    await last;
    expect(pings).toBeLessThan(10);
  });

  it('are counted for the connection’s address, whatever X-Forwarded-For says, unless there is a trusted proxy', async () => {
    await start({});
    const seen: number[] = [];
    for (let guess = 0; guess < 5; guess += 1)
      seen.push(...(await statuses(1, by(`guess-${guess}`, `9.9.9.${guess}`))));
    expect(seen).toEqual([401, 401, 401, 429, 429]);
  });

  it('are counted behind one proxy for the address that it tells, not for those that the caller made up before', async () => {
    await start({ TRUST_PROXY: '1' });
    const guess = (forwardedFor: string) => statuses(1, by('guess', forwardedFor));
    const seen: number[] = [];
    for (let made = 0; made < 5; made += 1) seen.push(...(await guess(`9.9.9.${made}, 10.1.1.1`)));
    expect(seen).toEqual([401, 401, 401, 429, 429]);
    expect(await guess('10.1.1.2')).toEqual([401]);
  });

  it.each([
    ['the /64 of an IPv6 address', (n: number) => `2001:db8:0:7:${n}::${n}`, '2001:db8:0:8::1'],
    [
      'an IPv4 address however it is written',
      (n: number) => ['1.2.3.4', '::ffff:1.2.3.4', '::ffff:102:304'][n % 3],
      '1.2.3.5',
    ],
    ['an address without the port that some proxies add', (n: number) => `1.2.3.4:${n + 1000}`, '1.2.3.5:1000'],
    ['an IPv6 address without port and zone', (n: number) => `[fe80::1%eth${n}]:${n + 1000}`, '[fe80:0:0:1::1]:1'],
    ['the proxy where it tells no address', (n: number) => `unknown-${n}`, '1.2.3.5'],
  ])('are counted for %s', async (_, one, other) => {
    await start({ TRUST_PROXY: '1' });
    const seen: number[] = [];
    for (let n = 0; n < 5; n += 1) seen.push(...(await statuses(1, by('guess', one(n)))));
    expect(seen).toEqual([401, 401, 401, 429, 429]);
    expect(await statuses(1, by('guess', other))).toEqual([401]);
  });

  it('that are refused are shown to operators, by which limit', async () => {
    await start({ RATE_LIMIT_PER_ADDRESS: '5' });
    await statuses(4, by('user'));
    await statuses(3, by('other'));
    await statuses(3);
    const refused = ['token', 'address', 'stranger'].map((limit) => `requests_refused_total{limit="${limit}"} 1`);
    await statuses(1);
    expect((await probe.metrics()).split('\n')).toEqual(expect.arrayContaining(refused));
  });
});

describe('RATE-LIMIT: the budget of a minute', () => {
  afterEach(() => void jest.useRealTimers());

  it('is there again a minute after the first use, and not before', async () => {
    jest.useFakeTimers({ now: 0 });
    const budget = new MinuteBudget(2, 10);
    const take = (at: number) => {
      jest.setSystemTime(at);
      return budget.take('key');
    };
    expect([await take(0), await take(20_500), await take(20_501), await take(59_999)]).toEqual([
      undefined,
      undefined,
      40,
      1,
    ]);
    expect([await take(60_000), await take(60_001), await take(60_002)]).toEqual([undefined, undefined, 60]);
    budget.close();
  });

  it('has room for what was given back, and for nothing that was refused meanwhile', async () => {
    const budget = new MinuteBudget(1, 10);
    await budget.take('key');
    expect([await budget.take('key'), await budget.take('key')].every((seconds) => seconds !== undefined)).toBe(true);
    await budget.giveBack('key');
    expect(await budget.take('key')).toBeUndefined();
    expect(await budget.take('key')).toBeGreaterThan(0);
    budget.close();
  });

  it('of a storm of keys takes a bounded amount of memory, and gives up those first that were not used for longest', async () => {
    const budget = new MinuteBudget(1, 100);
    await budget.take('in use');
    for (let key = 0; key < 1_000; key += 1) {
      expect(await budget.take(`${key}`)).toBeUndefined();
      await budget.take('in use');
    }
    expect(budget.size).toBe(100);
    expect(['900', '901', 'in use'].map((key) => budget.has(key))).toEqual([false, true, true]);
    budget.close();
  });
});

describeEachEngine('RATE-LIMIT: a storm of bad tokens', (engine) => {
  it('costs the database as many look-ups as the limit says, and a working token notices nothing', async () => {
    const recorder = new StatementRecorder();
    const app = await startApp(
      { url: await engine.createUrl() },
      { authMode: 'enforced', env: { RATE_LIMIT_PER_MINUTE: '10' }, recorder },
    );
    try {
      const { token } = await app.createUser();
      const good = new RestCaller(app.url, token);
      expect((await good.get('/tasks')).status).toBe(200);
      recorder.clear();
      const guesses = Array.from({ length: 40 }, (_, guess) => `clu_${String(guess).padStart(43, 'x')}`);
      const told = await Promise.all(guesses.map((guess) => new RestCaller(app.url, guess).get('/tasks')));
      expect(told.filter(({ status }) => status === 401)).toHaveLength(10);
      expect(told.filter(({ status }) => status === 429)).toHaveLength(30);
      expect(recorder.statements.filter(({ sql }) => sql.includes('token_hash'))).toHaveLength(10);
      expect((await good.get('/tasks')).status).toBe(200);
    } finally {
      await app.close();
    }
  });
});

describeEngine('sqlite', 'RATE-LIMIT: over MCP', (engine) => {
  it('MCP-ERRORS: a client is told in HTTP, before its call is read, and its session is there afterwards', async () => {
    const app = await startApp(
      { url: await engine.createUrl() },
      { authMode: 'enforced', env: { RATE_LIMIT_PER_MINUTE: '4' } },
    );
    try {
      const { token } = await app.createUser();
      const mcp = await McpCaller.open(app.url, '/mcp', token);
      for (let call = 0; call < 3; call += 1) await mcp.call('list_tasks_kandev');
      const refused = await mcp.post('this is not even JSON');
      expect([refused.status, refused.json.code]).toEqual([429, 'too_many_requests']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    } finally {
      await app.close();
    }
  });

  it('the messages of a batch count like as many requests', async () => {
    const app = await startApp(
      { url: await engine.createUrl() },
      { authMode: 'enforced', env: { RATE_LIMIT_PER_MINUTE: '6' } },
    );
    try {
      const { token } = await app.createUser();
      const mcp = await McpCaller.open(app.url, '/mcp', token);
      const batch = (ids: readonly number[]) =>
        mcp.post(JSON.stringify(ids.map((id) => ({ jsonrpc: '2.0', id, method: 'tools/list' }))));
      expect((await batch([1, 2, 3])).status).toBe(200);
      const refused = await batch([4, 5, 6]);
      expect([refused.status, refused.json]).toEqual([
        429,
        { error: 'more than 6 requests in a minute with this token', code: 'too_many_requests' },
      ]);
    } finally {
      await app.close();
    }
  });
});
