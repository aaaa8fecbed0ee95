import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'dotenv';
import { databaseLabel } from '../../src/config/database-label.js';
import { ConfigError, ENV_VARIABLES, loadEnv, readEnvironment } from '../../src/config/env.js';

/** The sentence of the refusal, or that there was none. */
function refusal(source: NodeJS.ProcessEnv): string {
  try {
    loadEnv(source);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'was accepted';
}

describe('CONFIG: loadEnv', () => {
  it('needs nothing: the defaults are a loopback server without authentication on an embedded file', () => {
    expect({ ...loadEnv({}) }).toEqual({
      host: '127.0.0.1',
      port: 3000,
      databaseUrl: 'sqlite:./data/clarion.db',
      poolSize: 10,
      authMode: 'disabled',
      preClaimBudgetMs: 5_000,
      deliveryBudgetMs: 30_000,
      waitTimeoutMs: 7_200_000,
      askHoldMs: 50_000,
      reattachMs: 10_000,
      shutdownGraceMs: 10_000,
      webhookAllowPrivate: false,
      logLevel: 'info',
      logFormat: 'json',
      rateLimitPerMinute: 0,
      rateLimitPerAddress: 0,
      maxHeldPerCaller: 0,
      maxHeldPerAddress: 0,
      maxHeldRequests: 10_000,
      maxConnections: 20_000,
      slowPeerTimeoutMs: 60_000,
      bodyLimitBytes: 1_048_576,
      corsOrigins: [],
      allowedHosts: [],
      trustProxy: false,
      openMetricsAndDocs: true,
    });
  });

  it('is frozen, and takes an empty variable for an absent one', () => {
    const env = loadEnv({ PORT: '', HOST: '' });
    expect(env.port).toBe(3000);
    expect(() => Object.assign(env, { port: 1 })).toThrow(TypeError);
  });

  it.each([
    ['HOST', 'not a host', 'HOST must be a host name or an IP address (is "not a host")'],
    ['PORT', 'abc', 'PORT must be a whole number from 0 to 65535 (is "abc")'],
    ['PORT', '70000', 'PORT must be a whole number from 0 to 65535 (is "70000")'],
    ['PORT', '1e3', 'PORT must be a whole number from 0 to 65535 (is "1e3")'],
    ['SLOW_PEER_TIMEOUT_MS', '0', 'SLOW_PEER_TIMEOUT_MS must be a whole number from 100 to 3600000 (is "0")'],
    ['MAX_CONNECTIONS', 'many', 'MAX_CONNECTIONS must be a whole number from 0 to 1000000 (is "many")'],
    ['MAX_HELD_PER_CALLER', '-1', 'MAX_HELD_PER_CALLER must be a whole number from 0 to 1000000 (is "-1")'],
    ['RATE_LIMIT_PER_ADDRESS', '1.5', 'RATE_LIMIT_PER_ADDRESS must be a whole number from 0 to 100000000 (is "1.5")'],
    ['AUTH_MODE', 'off', 'AUTH_MODE must be one of disabled, enforced (is "off")'],
    ['WAIT_TIMEOUT_MS', '-1', 'WAIT_TIMEOUT_MS must be a whole number from 1 to 86400000 (is "-1")'],
    [
      'LOG_LEVEL',
      'loud\nINJECTED',
      'LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent (is "loud\\nINJECTED")',
    ],
    ['WEBHOOK_ALLOW_PRIVATE', 'maybe', 'WEBHOOK_ALLOW_PRIVATE must be true or false (is "maybe")'],
    [
      'TRUST_PROXY',
      'true',
      'TRUST_PROXY must be false, a number of proxies from 1 to 9, or a list of addresses and subnets (is "true")',
    ],
    [
      'TRUST_PROXY',
      '10.0.0.0/33',
      'TRUST_PROXY must be false, a number of proxies from 1 to 9, or a list of addresses and subnets (is "10.0.0.0/33")',
    ],
    [
      'CORS_ORIGINS',
      'https://a.example/path',
      'CORS_ORIGINS must be a comma-separated list of origins such as https://inbox.example.org (is "https://a.example/path")',
    ],
    [
      'CORS_ORIGINS',
      '*',
      'CORS_ORIGINS must be a comma-separated list of origins such as https://inbox.example.org (is "*")',
    ],
    [
      'ALLOWED_HOSTS',
      'https://a.example',
      'ALLOWED_HOSTS must be a comma-separated list of host names, each with an optional port (is "https://a.example")',
    ],
  ])('stops at %s=%j with one line that names it', (variable, value, line) => {
    expect(refusal({ [variable]: value })).toBe(line);
  });

  it.each(['mysql://user:hunter2@db/x', 'sqlite:', 'sqlite::memory:', 'postgres://u:hunter2@h:port/x'])(
    'refuses DATABASE_URL=%s without repeating it',
    (url) => {
      const line = refusal({ DATABASE_URL: url });
      expect(line).toMatch(/^DATABASE_URL must be /);
      expect(line).not.toContain('hunter2');
    },
  );

  it.each(['0.0.0.0', '::', '192.168.1.5', 'clarion.example.org'])(
    'LOOPBACK: refuses to serve %s to everybody without authentication',
    (host) => {
      expect(refusal({ HOST: host })).toBe(
        `HOST may only be a loopback address while AUTH_MODE is disabled (is "${host}")`,
      );
      expect(loadEnv({ HOST: host, AUTH_MODE: 'enforced' }).host).toBe(host);
    },
  );

  it.each(['localhost', '127.0.0.2', '::1', '[::1]'])('serves %s without authentication', (host) => {
    expect(loadEnv({ HOST: host }).authMode).toBe('disabled');
  });

  it('RATE-LIMIT, HELD-LIMIT: gives an address ten times what a caller gets, and limits nobody on a loopback server without authentication', () => {
    const limits = (source: NodeJS.ProcessEnv) => {
      const env = loadEnv(source);
      return [env.rateLimitPerMinute, env.rateLimitPerAddress, env.maxHeldPerCaller, env.maxHeldPerAddress];
    };
    expect(limits({})).toEqual([0, 0, 0, 0]);
    expect(limits({ AUTH_MODE: 'enforced' })).toEqual([600, 6_000, 200, 2_000]);
    expect(limits({ TRUST_PROXY: '1' })).toEqual([600, 6_000, 200, 2_000]);
    expect(limits({ RATE_LIMIT_PER_MINUTE: '30', MAX_HELD_PER_CALLER: '3' })).toEqual([30, 300, 3, 30]);
    expect(limits({ AUTH_MODE: 'enforced', RATE_LIMIT_PER_ADDRESS: '0', MAX_HELD_PER_ADDRESS: '7' })).toEqual([
      600, 0, 200, 7,
    ]);
    expect(limits({ AUTH_MODE: 'enforced', RATE_LIMIT_PER_MINUTE: '0' })).toEqual([0, 0, 200, 2_000]);
  });

  it('limits the rate and closes metrics and docs by default where others can reach the server', () => {
    const exposed = loadEnv({ HOST: '0.0.0.0', AUTH_MODE: 'enforced' });
    expect([exposed.rateLimitPerMinute, exposed.openMetricsAndDocs]).toEqual([600, false]);
    const proxied = loadEnv({ TRUST_PROXY: '1' });
    expect([proxied.rateLimitPerMinute, proxied.openMetricsAndDocs]).toEqual([600, false]);
    const opened = loadEnv({
      TRUST_PROXY: 'loopback, 10.0.0.0/8',
      OPEN_METRICS_AND_DOCS: 'true',
      RATE_LIMIT_PER_MINUTE: '0',
    });
    expect([opened.rateLimitPerMinute, opened.openMetricsAndDocs, opened.trustProxy]).toEqual([
      0,
      true,
      ['loopback', '10.0.0.0/8'],
    ]);
  });

  it('reads lists', () => {
    const env = loadEnv({
      CORS_ORIGINS: 'https://A.example, http://b.example:8080',
      ALLOWED_HOSTS: 'A.example,[::2]:80',
    });
    expect(env.corsOrigins).toEqual(['https://a.example', 'http://b.example:8080']);
    expect(env.allowedHosts).toEqual(['a.example', '[::2]:80']);
  });
});

describe('CONFIG: .env.example', () => {
  const lines = readFileSync('.env.example', 'utf8').split('\n');
  const shown = lines.flatMap((line) => /^#?([A-Z_]+)=/.exec(line)?.[1] ?? []);

  it('explains every variable, in order, and no other', () => {
    expect(shown).toEqual(ENV_VARIABLES);
    for (const variable of shown) {
      const at = lines.findIndex((line) => line.replace(/^#/, '').startsWith(`${variable}=`));
      expect(lines[at - 1]).toMatch(/^# .{20}/);
    }
  });

  it('shows the defaults', () => {
    const values = parse(lines.map((line) => line.replace(/^#(?=[A-Z_]+=)/, '')).join('\n'));
    expect(loadEnv(values)).toEqual(loadEnv({}));
  });
});

describe('readEnvironment', () => {
  it('puts the process environment over the .env file and leaves process.env alone', () => {
    const folder = mkdtempSync(join(tmpdir(), 'clarion-env-'));
    try {
      const file = join(folder, '.env');
      writeFileSync(file, 'PATH=/nowhere\nCLARION_TEST_ONLY=from file\n');
      const read = readEnvironment(file);
      expect(read['PATH']).toBe(process.env['PATH']);
      expect(read['CLARION_TEST_ONLY']).toBe('from file');
      expect(process.env['CLARION_TEST_ONLY']).toBeUndefined();
      expect(() => readEnvironment(folder)).toThrow('cannot be read (EISDIR)');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('databaseLabel', () => {
  it('NO-SECRETS: never shows user, password or parameters of a database URL', () => {
    expect(databaseLabel('postgres://me:hunter2@db.example:5433/clarion?password=hunter2')).toBe(
      'postgres://db.example:5433/clarion',
    );
    expect(databaseLabel('sqlite:./data/clarion.db')).toBe('sqlite:./data/clarion.db');
  });
});
