import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { describeEngine } from '../support/engines.js';
import { startServerProcess } from './server-process.js';
import type { ServerProcess } from './server-process.js';

const LISTENS =
  /^Clarion listens on (http:\/\/127\.0\.0\.1:\d+), database sqlite:\.\/data\/clarion\.db, authentication disabled$/;

describe('the server process', () => {
  let folder: string;
  const started: ServerProcess[] = [];
  const start = (env: NodeJS.ProcessEnv = {}) => {
    const server = startServerProcess(env, folder);
    started.push(server);
    return server;
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'clarion-process-'));
  });
  afterEach(async () => {
    for (const { child, ended } of started.splice(0)) {
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(folder, { recursive: true });
  });

  it('START-LINE, SHUTDOWN, FILE-MODE: prints one line and is ready, stops in order on either signal with status 0, and starts again on its database', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const server = start();
      const line = await server.firstLine;
      const [, url] = LISTENS.exec(line) ?? [];
      expect((await fetch(`${url}/health/ready`)).status).toBe(200);
      expect(statSync(join(folder, 'data/clarion.db')).mode & 0o777).toBe(0o600);
      server.child.kill(signal);
      expect(await server.ended).toEqual({ code: 0, signal: null, stdout: `${line}\n`, stderr: '' });
    }
  });

  it('SHUTDOWN: stops in order on a signal that comes while it starts, and on a second one', async () => {
    const server = start({ LOG_LEVEL: 'debug' });
    // The first record shows that the signal handlers are there.
    await new Promise((resolve) => server.child.stderr?.once('data', resolve));
    server.child.kill('SIGTERM');
    server.child.kill('SIGTERM');
    const { code, signal } = await server.ended;
    expect([code, signal]).toEqual([0, null]);
  });

  it('LOOPBACK, CONFIG: refuses to start with an environment that it cannot run with, with one line', async () => {
    expect(await start({ HOST: '0.0.0.0' }).ended).toEqual({
      code: 1,
      signal: null,
      stdout: '',
      stderr: 'clarion: HOST may only be a loopback address while AUTH_MODE is disabled (is "0.0.0.0")\n',
    });
  });

  it('RECOVER-ORDER: refuses to start on a port that is taken, with one line', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = taken.address() as AddressInfo;
      expect(await start({ PORT: String(port) }).ended).toEqual({
        code: 1,
        signal: null,
        stdout: '',
        stderr: `clarion: cannot listen on 127.0.0.1 port ${port}: another process does already\n`,
      });
    } finally {
      taken.close();
    }
  });

  it('RECOVER-ORDER, NO-SECRETS: refuses to start without its database, with one line that holds no password', async () => {
    const { code, stdout, stderr } = await start({ DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/x' }).ended;
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^clarion: [^\n]+\n$/);
    expect(stderr).not.toContain('hunter2');
  });

  it('LOCK: refuses a second server on the same database, with one line, and leaves the first alone', async () => {
    const first = start();
    const url = /http:\S+[0-9]/.exec(await first.firstLine)?.[0];
    const { code, stdout, stderr } = await start().ended;
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^clarion: [^\n]+\n$/);
    expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  });
});

describeEngine('postgres', 'the server process', (engine) => {
  it('START-LINE, NO-SECRETS: names a PostgreSQL database without user, password and parameters', async () => {
    const url = new URL(await engine.createUrl());
    const shown = `postgres://${url.host}${url.pathname}`;
    url.searchParams.set('application_name', 'not-for-everybody');
    const server = startServerProcess({ DATABASE_URL: url.href }, tmpdir());
    try {
      const line = await server.firstLine;
      expect(line.replace(/http:\/\/127\.0\.0\.1:\d+/, 'URL')).toBe(
        `Clarion listens on URL, database ${shown}, authentication disabled`,
      );
    } finally {
      server.child.kill('SIGTERM');
      await server.ended;
    }
  });
});
