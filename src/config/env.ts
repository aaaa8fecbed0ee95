import { existsSync, readFileSync } from 'node:fs';
import { parse } from 'dotenv';
import { cleanEnv } from 'envalid';
import { choice, databaseUrl, flag, host, hostList, originList, trustProxy, wholeNumber } from './env-validators.js';
import { isLoopbackHost } from './loopback.js';

/** An environment that cannot be run with: one line, which names the variable. */
export class ConfigError extends Error {
  constructor(
    readonly variable: string,
    problem: string,
  ) {
    super(`${variable} ${problem}`);
    this.name = 'ConfigError';
  }
}

const VARIABLES = {
  HOST: host({ default: '127.0.0.1' }),
  PORT: wholeNumber(0, 65_535)({ default: 3000 }),
  DATABASE_URL: databaseUrl({ default: 'sqlite:./data/clarion.db' }),
  POOL_SIZE: wholeNumber(2, 500)({ default: 10 }),
  AUTH_MODE: choice('disabled', 'enforced')({ default: 'disabled' }),
  PRE_CLAIM_BUDGET_MS: wholeNumber(1, 600_000)({ default: 5_000 }),
  DELIVERY_BUDGET_MS: wholeNumber(1, 600_000)({ default: 30_000 }),
  WAIT_TIMEOUT_MS: wholeNumber(1, 86_400_000)({ default: 7_200_000 }),
  ASK_HOLD_MS: wholeNumber(0, 86_400_000)({ default: 50_000 }),
  REATTACH_MS: wholeNumber(0, 600_000)({ default: 10_000 }),
  SHUTDOWN_GRACE_MS: wholeNumber(0, 600_000)({ default: 10_000 }),
  WEBHOOK_ALLOW_PRIVATE: flag({ default: false }),
  LOG_LEVEL: choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent')({ default: 'info' }),
  LOG_FORMAT: choice('json', 'pretty')({ default: 'json' }),
  RATE_LIMIT_PER_MINUTE: wholeNumber(0, 1_000_000)({ default: undefined }),
  RATE_LIMIT_PER_ADDRESS: wholeNumber(0, 100_000_000)({ default: undefined }),
  MAX_HELD_PER_CALLER: wholeNumber(0, 1_000_000)({ default: undefined }),
  MAX_HELD_PER_ADDRESS: wholeNumber(0, 1_000_000)({ default: undefined }),
  MAX_HELD_REQUESTS: wholeNumber(0, 1_000_000)({ default: 10_000 }),
  MAX_CONNECTIONS: wholeNumber(0, 1_000_000)({ default: 20_000 }),
  SLOW_PEER_TIMEOUT_MS: wholeNumber(100, 3_600_000)({ default: 60_000 }),
  BODY_LIMIT_BYTES: wholeNumber(16_384, 67_108_864)({ default: 1_048_576 }),
  CORS_ORIGINS: originList({ default: [] }),
  ALLOWED_HOSTS: hostList({ default: [] }),
  TRUST_PROXY: trustProxy({ default: false }),
  OPEN_METRICS_AND_DOCS: flag({ default: undefined }),
};

/** Every variable that is read, in the order of `.env.example`. */
export const ENV_VARIABLES: readonly string[] = Object.keys(VARIABLES);

/** Requests a minute of one token when the service can be reached by others: a busy agent needs about 60. */
const SENSIBLE_RATE_LIMIT = 600;
/** Waits and streams of one caller then: an agent needs one or two, a page in a browser one. */
const SENSIBLE_HELD_PER_CALLER = 200;
/** What an address gets, in callers: an office or a machine with its agents. */
const CALLERS_OF_AN_ADDRESS = 10;

/** How this process was told to run. Frozen; times in milliseconds. `.env.example` explains each value. */
export class Env {
  readonly host!: string;
  readonly port!: number;
  readonly databaseUrl!: string;
  readonly poolSize!: number;
  readonly authMode!: 'disabled' | 'enforced';
  readonly preClaimBudgetMs!: number;
  readonly deliveryBudgetMs!: number;
  readonly waitTimeoutMs!: number;
  readonly askHoldMs!: number;
  readonly reattachMs!: number;
  readonly shutdownGraceMs!: number;
  readonly webhookAllowPrivate!: boolean;
  readonly logLevel!: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  readonly logFormat!: 'json' | 'pretty';
  /** Of one token, and of what comes from one address without a valid one. 0 = off. */
  readonly rateLimitPerMinute!: number;
  /** Of all valid tokens from one address. 0 = off. */
  readonly rateLimitPerAddress!: number;
  /** Waits and streams open at a time. 0 = any number. */
  readonly maxHeldPerCaller!: number;
  readonly maxHeldPerAddress!: number;
  readonly maxHeldRequests!: number;
  /** 0 = any number. */
  readonly maxConnections!: number;
  /** For a request to arrive whole, and for a peer to take something of what is sent to it. */
  readonly slowPeerTimeoutMs!: number;
  readonly bodyLimitBytes!: number;
  /** Origins beside our own that may call from a browser, e.g. `https://inbox.example.org`. */
  readonly corsOrigins!: readonly string[];
  /** Host names beside the loopback ones and `host` itself; with a port, only that port. */
  readonly allowedHosts!: readonly string[];
  readonly trustProxy!: false | number | readonly string[];
  /** Whether `/metrics` and `/docs` exist and need no token. */
  readonly openMetricsAndDocs!: boolean;

  constructor(values: { readonly [K in keyof Env]: Env[K] }) {
    Object.assign(this, values);
    Object.freeze(this);
  }
}

/** @throws ConfigError for the first variable that cannot be used */
export function loadEnv(source: NodeJS.ProcessEnv): Env {
  // An empty variable is what compose files and CI make of an absent one.
  const given = Object.fromEntries(Object.entries(source).filter(([, value]) => value !== undefined && value !== ''));
  const read = cleanEnv(given, VARIABLES, {
    reporter: ({ errors }) => {
      const [first] = Object.entries(errors);
      if (first !== undefined) throw new ConfigError(first[0], first[1].message);
    },
  });
  const loopback = isLoopbackHost(read.HOST);
  if (!loopback && read.AUTH_MODE === 'disabled') {
    throw new ConfigError('HOST', `may only be a loopback address while AUTH_MODE is disabled (is "${read.HOST}")`);
  }
  const exposed = !loopback || read.TRUST_PROXY !== false;
  const hasLimits = exposed || read.AUTH_MODE === 'enforced';
  const rateLimitPerMinute = read.RATE_LIMIT_PER_MINUTE ?? (hasLimits ? SENSIBLE_RATE_LIMIT : 0);
  const maxHeldPerCaller = read.MAX_HELD_PER_CALLER ?? (hasLimits ? SENSIBLE_HELD_PER_CALLER : 0);
  return new Env({
    host: read.HOST,
    port: read.PORT,
    databaseUrl: read.DATABASE_URL,
    poolSize: read.POOL_SIZE,
    authMode: read.AUTH_MODE,
    preClaimBudgetMs: read.PRE_CLAIM_BUDGET_MS,
    deliveryBudgetMs: read.DELIVERY_BUDGET_MS,
    waitTimeoutMs: read.WAIT_TIMEOUT_MS,
    askHoldMs: read.ASK_HOLD_MS,
    reattachMs: read.REATTACH_MS,
    shutdownGraceMs: read.SHUTDOWN_GRACE_MS,
    webhookAllowPrivate: read.WEBHOOK_ALLOW_PRIVATE,
    logLevel: read.LOG_LEVEL,
    logFormat: read.LOG_FORMAT,
    rateLimitPerMinute,
    rateLimitPerAddress: read.RATE_LIMIT_PER_ADDRESS ?? rateLimitPerMinute * CALLERS_OF_AN_ADDRESS,
    maxHeldPerCaller,
    maxHeldPerAddress: read.MAX_HELD_PER_ADDRESS ?? maxHeldPerCaller * CALLERS_OF_AN_ADDRESS,
    maxHeldRequests: read.MAX_HELD_REQUESTS,
    maxConnections: read.MAX_CONNECTIONS,
    slowPeerTimeoutMs: read.SLOW_PEER_TIMEOUT_MS,
    bodyLimitBytes: read.BODY_LIMIT_BYTES,
    corsOrigins: read.CORS_ORIGINS,
    allowedHosts: read.ALLOWED_HOSTS,
    trustProxy: read.TRUST_PROXY,
    openMetricsAndDocs: read.OPEN_METRICS_AND_DOCS ?? !exposed,
  });
}

/**
 * The process environment over the `.env` file of the working directory, if there is one. Nothing is written back
 * to `process.env`.
 *
 * @throws ConfigError when the file is there and cannot be read
 */
export function readEnvironment(file = '.env'): NodeJS.ProcessEnv {
  if (!existsSync(file)) return { ...process.env };
  try {
    return { ...parse(readFileSync(file)), ...process.env };
  } catch (cause) {
    throw new ConfigError(file, `cannot be read (${(cause as NodeJS.ErrnoException).code ?? 'unknown error'})`);
  }
}
