import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { startServerProcess } from '../process/server-process.js';
import type { ServerProcess } from '../process/server-process.js';
import { describeEachEngine } from '../support/engines.js';
import { until } from '../support/until.js';
import { command, emptyFolder, refusal } from './command-line.js';

let server: ServerProcess | undefined;

async function startServer(environment: Record<string, string>): Promise<string> {
  server = startServerProcess(environment, emptyFolder());
  return /http:\/\/[^ ,]+/.exec(await server.firstLine)?.[0] ?? '';
}

function post(url: string, token: string, body: unknown): Promise<Record<string, string>> {
  return send(url, token, { method: 'POST', body: JSON.stringify(body) });
}

function get(url: string, token: string): Promise<Record<string, string>> {
  return send(url, token, {});
}

async function send(url: string, token: string, request: RequestInit): Promise<Record<string, string>> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const response = await fetch(url, { ...request, headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text) as Record<string, string>;
}

describeEachEngine('CLI: beside a running server', (engine) => {
  afterEach(async () => {
    server?.child.kill('SIGKILL');
    await server?.ended;
  });

  it('makes tokens, answers a question, tells who came first, and ends the wait of a revoked token (MCP-REVOKED)', async () => {
    const environment = { DATABASE_URL: await engine.createUrl({ migrated: false }), AUTH_MODE: 'enforced' };
    const url = await startServer(environment);
    const cli = (args: string[], extra: Record<string, string> = {}) =>
      command(args, { ...environment, CLARION_URL: url, ...extra });
    const userToken = async (name: string) => {
      await cli(['user', 'create', name]);
      return (await cli(['token', 'create', '--user', name])).stdout.trim();
    };
    const ada = await userToken('ada');
    const bob = await userToken('bob');

    const api = `${url}/api/v1`;
    const workspace = await post(`${api}/workspaces`, ada, { name: 'one' });
    const task = await post(`${api}/tasks`, ada, { title: 'a task', workspace_id: workspace['id'] });
    const session = await post(`${api}/tasks/${task['id']}/sessions`, ada, {});
    const { pending_id: pendingId = '' } = await post(`${api}/clarification/request`, session['agent_token'] ?? '', {
      session_id: session['id'],
      questions: [{ prompt: 'Which one?', options: [{ label: 'SQLite' }, { label: 'PostgreSQL' }] }],
    });

    // A session's agent that gets another token loses what it held open with the old one.
    const agentsWait = fetch(`${api}/clarification/${pendingId}/wait`, {
      headers: { authorization: `Bearer ${session['agent_token']}` },
    });
    await until(async () => (await get(`${api}/task-sessions/${session['id']}`, ada))['state'] === 'waiting_for_input');
    await post(`${api}/task-sessions/${session['id']}/agent-token`, ada, {});
    expect(await (await agentsWait).json()).toEqual({
      error: 'the access token is no longer valid',
      code: 'unauthorized',
    });

    // Whoever may not see it gets what they would get for nothing at all, until they may.
    const answer = ['question', 'answer', pendingId, '--select', 'q1=q1_opt2', '--text', 'q1=soon'];
    expect((await cli(['question', 'list'])).stderr).toMatch(/^error: .* \(unauthorized\); set CLARION_TOKEN\n$/);
    expect((await cli(['question', 'list'], { CLARION_TOKEN: bob })).stdout).toBe('no open questions\n');
    expect(await cli(answer, { CLARION_TOKEN: bob })).toEqual(
      refusal(1, 'clarification request not found (not_found)'),
    );
    expect((await cli(['workspace', 'list'])).stdout).toContain(`${workspace['id']}  ada    one\n`);
    await cli(['workspace', 'assign', workspace['id'] ?? '', '--owner', 'bob']);
    expect((await cli(['question', 'list'], { CLARION_TOKEN: bob })).stdout).toContain(
      `${pendingId}  task ${task['id']}  `,
    );

    const waiting = fetch(`${api}/clarification/${pendingId}/wait`, { headers: { authorization: `Bearer ${bob}` } });
    const bobsToken = (await cli(['token', 'list'])).stdout.split('\n').find((line) => line.includes('bob')) ?? '';
    await cli(['token', 'revoke', bobsToken.slice(0, 36)]);
    expect((await waiting).status).toBe(401);

    await cli(['workspace', 'assign', workspace['id'] ?? '', '--no-owner']);
    expect((await cli(answer.slice(0, 3).concat('--select', 'q1=nothing'), { CLARION_TOKEN: ada })).status).toBe(2);
    expect((await cli(answer, { CLARION_TOKEN: ada })).stdout).toMatch(/^answered\n/);
    expect((await cli(['question', 'answer', pendingId, '--reject'], { CLARION_TOKEN: ada })).stdout).toMatch(
      /^already answered; this is what counts:\n {2}q1: q1_opt2; soon\n/,
    );
    expect((await cli(['question', 'list'], { CLARION_TOKEN: ada })).stdout).toBe('no open questions\n');

    if (engine.name === 'sqlite') {
      const backup = join(emptyFolder(), 'backup.db');
      expect((await cli(['backup', backup])).status).toBe(0);
      expect(statSync(backup).mode & 0o777).toBe(0o600);
    }
  });
});
