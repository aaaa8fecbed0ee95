import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { describeEngine } from '../support/engines.js';

const ROOT = join(import.meta.dirname, '..', '..');

async function runDemo(...args: string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const loader = pathToFileURL(join(ROOT, 'test/support/run-typescript.js')).href;
  const child = spawn(process.execPath, ['--import', loader, join(ROOT, 'src/demo/main.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, stdout, stderr };
}

/** In front of a real server: tells every loser over REST that it won. */
function claimingTwice(target: string): Server {
  const { hostname, port } = new URL(target);
  return createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, host: `${hostname}:${port}` };
    const onward = httpRequest({ hostname, port, path: incoming.url, method: incoming.method, headers }, (reply) => {
      const isRespond = incoming.url?.endsWith('/respond') === true;
      if (!isRespond) {
        outgoing.writeHead(reply.statusCode ?? 500, reply.headers);
        reply.pipe(outgoing);
        return;
      }
      let body = '';
      reply.on('data', (chunk: Buffer) => (body += chunk.toString()));
      reply.on('end', () => {
        outgoing.writeHead(reply.statusCode ?? 500, { 'content-type': 'application/json' });
        outgoing.end(body.replace('"claimed":false', '"claimed":true'));
      });
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
}

describe('DEMO', () => {
  it('DEMO: tells the whole story, exits 0, and the README shows exactly what it prints', async () => {
    const { status, stdout, stderr } = await runDemo();
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const shown = /<!-- demo transcript[^>]*-->\s*```text\n(.*?)\n```/s.exec(readme)?.[1];
    expect(shown).toBe(stdout.trim());
  }, 120_000);
});

describeEngine('sqlite', 'DEMO against a server that is given', (engine) => {
  let app: RunningApp;

  beforeAll(async () => {
    app = await startApp({ url: await engine.createUrl() }, { env: { REATTACH_MS: '0' } });
  });

  afterAll(() => app.close());

  it('DEMO: a server that lets two callers win makes it exit 1 and say what is not so', async () => {
    const double = claimingTwice(app.url).listen(0, '127.0.0.1');
    await once(double, 'listening');
    try {
      const { port } = double.address() as AddressInfo;
      const { status, stdout, stderr } = await runDemo('--url', `http://127.0.0.1:${port}`);
      expect(status).toBe(1);
      expect(stdout).toContain('NOT SO: the second answer did not win');
      expect(stderr).toContain('the second answer did not win');
    } finally {
      double.closeAllConnections();
      double.close();
    }
  }, 120_000);

  it('DEMO: an honest server that is given makes it exit 0', async () => {
    const { status, stderr } = await runDemo('--url', app.url);
    expect(stderr).toBe('');
    expect(status).toBe(0);
  }, 120_000);
});
