import { setTimeout as pause } from 'node:timers/promises';
import { runCommandLine } from '../../src/cli/program.js';
import { loadEnv } from '../../src/config/env.js';
import { startServerProcess, type ServerProcess } from '../process/server-process.js';
import { faultsIn } from '../soak/invariants.js';
import { fuzz, type FuzzOptions, type FuzzReport } from './fuzz.js';
import { tellsOfOvertaking } from './replies.js';
import { WebhookSink } from './webhook-sink.js';
import type { FuzzUser } from './world.js';

export type AuthMode = 'enforced' | 'disabled';

const SETTLE_MS = 30_000;

/**
 * No limit on how much is asked, short waits, and time enough on a busy machine: what is too slow there is no fault.
 * Only what somebody must look at is logged.
 */
const SETTINGS = {
  RATE_LIMIT_PER_MINUTE: '0',
  PRE_CLAIM_BUDGET_MS: '30000',
  WAIT_TIMEOUT_MS: '250',
  ASK_HOLD_MS: '100',
  REATTACH_MS: '50',
  WEBHOOK_ALLOW_PRIVATE: 'true',
  LOG_LEVEL: 'error',
};

/** Fuzzes a server process of its own on a fresh database; its faults include what it leaves behind. */
export async function fuzzServer(
  where: { readonly databaseUrl: string; readonly authMode: AuthMode; readonly folder: string },
  options: Omit<FuzzOptions, 'url' | 'users' | 'webhookUrl'>,
): Promise<FuzzReport> {
  return withFuzzedServer(where, async ({ url, users, webhookUrl, server }) => {
    const report = await fuzz({ ...options, url, users, webhookUrl });
    const faults = [...report.faults, ...(await faultsLeft(url))];
    server.child.kill('SIGTERM');
    const { code, signal, stderr } = await server.ended;
    if (code !== 0) faults.push(`the server ended with ${code ?? signal}`);
    const errors = stderr.split('\n').filter((line) => line !== '' && !tellsOfOvertaking(line));
    if (errors.length > 0) faults.push(`the server logged errors:\n${errors.join('\n').slice(0, 4_000)}`);
    faults.push(...(await faultsIn(where.databaseUrl, { told: report.told, admitted: new Map() }, [])));
    return { ...report, faults };
  });
}

export interface FuzzedServer {
  readonly url: string;
  readonly users: readonly [FuzzUser, FuzzUser];
  readonly webhookUrl: string;
  readonly server: ServerProcess;
}

/** A real server for as long as `use` takes. */
export async function withFuzzedServer<T>(
  {
    databaseUrl,
    authMode,
    folder,
  }: { readonly databaseUrl: string; readonly authMode: AuthMode; readonly folder: string },
  use: (server: FuzzedServer) => Promise<T>,
): Promise<T> {
  // Before the start: a database has one server, and the command line would be a second one.
  const users = [await makeUser(databaseUrl, 'fuzz-a'), await makeUser(databaseUrl, 'fuzz-b')] as const;
  const sink = await WebhookSink.start();
  const server = startServerProcess({ ...SETTINGS, DATABASE_URL: databaseUrl, AUTH_MODE: authMode }, folder);
  const end = (): void => void server.child.kill('SIGKILL');
  // Before its folder is removed.
  process.prependOnceListener('exit', end);
  try {
    const url = /http:\/\/\S+?(?=,)/.exec(await server.firstLine)?.[0];
    if (url === undefined) throw new Error('the server does not say where it listens');
    return await use({ url, users: authMode === 'enforced' ? users : [{}, {}], webhookUrl: sink.url, server });
  } finally {
    end();
    process.off('exit', end);
    await server.ended;
    await sink.close();
  }
}

async function makeUser(databaseUrl: string, name: string): Promise<FuzzUser> {
  await operate(databaseUrl, 'user', 'create', name);
  return { token: await operate(databaseUrl, 'token', 'create', '--user', name) };
}

async function operate(databaseUrl: string, ...args: string[]): Promise<string> {
  let printed = '';
  let complaint = '';
  const status = await runCommandLine(
    args,
    {
      env: () => loadEnv({ DATABASE_URL: databaseUrl }),
      server: () => ({ url: '', token: undefined }),
      print: (text) => (printed += text),
    },
    (line) => (complaint += line),
  );
  if (status !== 0) throw new Error(`${args.join(' ')}: ${complaint}`);
  return printed;
}

/** It lives, and nobody it served is still held. */
async function faultsLeft(url: string): Promise<string[]> {
  const giveUpAt = performance.now() + SETTLE_MS;
  for (;;) {
    const ready = await fetch(`${url}/health/ready`);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const valuesOf = (name: string) =>
      [...metrics.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (.+)$`, 'gm'))].map(([, value]) => value);
    const faults = [
      ...(ready.status === 200 ? [] : [`the server is not ready: ${ready.status}`]),
      ...['clarification_active_waiters', 'sse_clients', 'turn_dispatches_owed']
        .filter((name) => valuesOf(name).length === 0 || valuesOf(name).some((value) => value !== '0'))
        .map((name) => `${name} is ${valuesOf(name).join(' and ')} in the end`),
    ];
    if (faults.length === 0 || performance.now() > giveUpAt) return faults;
    await pause(100);
  }
}
