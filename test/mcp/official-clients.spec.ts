import { execFile } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeEngine } from '../support/engines.js';
import { startApp } from '../support/app.js';
import type { RunningApp } from '../support/app.js';

const MAKERS = resolve('node_modules/@modelcontextprotocol');
const CONFORMANCE = join(MAKERS, 'conformance/dist/index.js');
const INSPECTOR = join(MAKERS, 'inspector-cli/build/cli.js');

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** In the program's own folder, because the inspector looks for its package.json from there. */
function run(program: string, ...args: string[]): Promise<Ended> {
  return new Promise((ended) => {
    execFile(process.execPath, [program, ...args], { cwd: dirname(program) }, (error, stdout, stderr) => {
      ended({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describeEngine('sqlite', 'MCP by the tools of its makers', (engine) => {
  let running: RunningApp;
  let taskId: string;
  let sessionId: string;

  beforeAll(async () => {
    running = await startApp(await engine.createDatabase());
    const task = await running.http.post('/api/v1/tasks').send({ title: 'A task' });
    taskId = task.body.id;
    const session = await running.http.post(`/api/v1/tasks/${taskId}/sessions`).send({});
    sessionId = session.body.id;
  });
  afterAll(() => running.close());

  it.each(['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'])(
    'passes the conformance scenario %s on both surfaces',
    async (scenario) => {
      await Promise.all(
        ['/mcp', `/mcp/sessions/${sessionId}`].map(async (path) => {
          const ended = await run(CONFORMANCE, 'server', '--url', running.url + path, '--scenario', scenario);
          expect([path, ended.code, ended.stdout]).toEqual([path, 0, expect.stringContaining('0 failed')]);
        }),
      );
    },
  );

  const inspect = (path: string, ...args: string[]) =>
    run(INSPECTOR, '--cli', running.url + path, '--transport', 'http', ...args);

  const call = async (path: string, tool: string, ...args: string[]) => {
    const named = args.flatMap((arg) => ['--tool-arg', arg]);
    const ended = await inspect(path, '--method', 'tools/call', '--tool-name', tool, ...named);
    expect([ended.code, ended.stderr]).toEqual([0, expect.any(String)]);
    return JSON.parse(ended.stdout) as { isError?: boolean; structuredContent: Record<string, unknown> };
  };

  it('lists and calls the tools of both surfaces by the inspector', async () => {
    const listed = await inspect('/mcp', '--method', 'tools/list');
    expect(JSON.parse(listed.stdout)).toMatchObject({
      tools: [{ name: 'list_pending_questions_kandev' }, {}, {}, {}, {}],
    });

    const session = `/mcp/sessions/${sessionId}`;
    const questions = [{ prompt: 'Which?', options: [{ label: 'This' }, { label: 'That' }] }];
    const asked = await call(
      session,
      'ask_user_question_kandev',
      `questions=${JSON.stringify(questions)}`,
      'timeout_seconds=0',
    );
    expect(asked.structuredContent).toMatchObject({ status: 'pending' });
    const pendingId = String(asked.structuredContent['pending_id']);

    const [page, tasks, workspaces] = await Promise.all([
      call('/mcp', 'list_pending_questions_kandev', 'limit=1'),
      call('/mcp', 'list_tasks_kandev'),
      call('/mcp', 'list_workspaces_kandev'),
    ]);
    expect(page.structuredContent).toMatchObject({ count: 1, bundles: [{ pending_id: pendingId }] });
    expect(tasks.structuredContent).toMatchObject({ tasks: [{ id: taskId }] });
    expect(workspaces.structuredContent).toEqual({ workspaces: [] });

    const [conversation, missing] = await Promise.all([
      call('/mcp', 'get_task_conversation_kandev', `task_id=${taskId}`),
      call('/mcp', 'answer_question_kandev', 'pending_id=missing'),
    ]);
    expect(conversation.structuredContent).toMatchObject({ messages: [{ content: 'Which?' }] });
    expect(missing).toMatchObject({ isError: true });

    const answered = await call(
      '/mcp',
      'answer_question_kandev',
      `pending_id=${pendingId}`,
      'rejected=true',
      'reject_reason=no',
    );
    expect(answered.structuredContent).toMatchObject({ claimed: true, status: 'rejected' });
    const waited = await call(session, 'wait_for_answer_kandev', `pending_id=${pendingId}`);
    expect(waited.structuredContent).toMatchObject({ rejected: true });
  }, 120_000);

  it('tells the inspector of an unknown tool', async () => {
    const ended = await inspect('/mcp', '--method', 'tools/call', '--tool-name', 'ask_user_question_kandev');
    expect(ended.code).not.toBe(0);
    expect(ended.stderr + ended.stdout).toMatch(/unknown tool|not found/i);
  });
});
