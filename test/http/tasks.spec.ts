import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { RestCaller, type Json } from '../support/callers.js';
import { describeEachEngine } from '../support/engines.js';

const QUESTIONS = [{ prompt: 'Which?', options: [{ label: 'this' }, { label: 'that' }] }];

describeEachEngine('workspaces, tasks and sessions over REST', (engine) => {
  let app: RunningApp;
  let ada: RestCaller;
  let adaId: string;
  let bob: RestCaller;

  beforeAll(async () => {
    app = await startApp({ url: await engine.createUrl() }, { authMode: 'enforced' });
    const [first, second] = [await app.createUser(), await app.createUser()];
    ada = new RestCaller(app.url, first.token);
    adaId = first.id;
    bob = new RestCaller(app.url, second.token);
  });

  afterAll(() => app.close());

  it('WORKSPACES: one belongs to whoever made it and is listed for those who see it', async () => {
    const made = await ada.post('/workspaces', { name: 'Payments' });
    expect(made.status).toBe(201);
    expect(made.json).toMatchObject({ name: 'Payments', owner_id: adaId });
    const ids = async (caller: RestCaller) =>
      (await caller.get('/workspaces')).json.workspaces.map((workspace: Json) => workspace.id);
    expect(await ids(ada)).toContain(made.json.id);
    expect(await ids(bob)).not.toContain(made.json.id);
  });

  it('TASKS: made in an accessible workspace, listed by page, read and deleted', async () => {
    const workspace = await ada.make('POST', '/workspaces', { name: 'Tasks' });
    const inWorkspace = (title: string) => ({ title, workspace_id: workspace.id });
    expect((await bob.post('/tasks', inWorkspace('no'))).json).toEqual({
      error: 'workspace not found',
      code: 'not_found',
    });
    const titles = ['first', 'second', 'third'];
    const made: Json[] = [];
    for (const title of titles) made.push(await ada.make('POST', '/tasks', inWorkspace(title)));
    const listed: string[] = [];
    let cursor = '';
    do {
      const page = (await ada.get(`/tasks?workspace_id=${workspace.id}&limit=1&cursor=${cursor}`)).json;
      expect(page.tasks).toHaveLength(1);
      listed.push(page.tasks[0].title);
      cursor = page.next_cursor;
    } while (cursor !== '');
    expect(listed).toEqual(titles);
    expect((await bob.get(`/tasks?workspace_id=${workspace.id}`)).json.tasks).toEqual([]);
    const path = `/tasks/${made[0].id}`;
    expect((await ada.get(path)).json).toEqual(made[0]);
    expect((await ada.send('DELETE', path)).status).toBe(204);
    expect((await ada.get(path)).json).toEqual({ error: 'task not found', code: 'not_found' });
  });

  it('TASKS: without a workspace one must say so, where tokens are needed; then everybody sees it', async () => {
    expect((await ada.post('/tasks', { title: 'whose?' })).json).toEqual({
      error: 'workspace_id is required; "" makes a task that everybody sees',
      code: 'validation_failed',
    });
    const task = await ada.make('POST', '/tasks', { title: 'everybody’s', workspace_id: '' });
    expect((await bob.get(`/tasks/${task.id}`)).status).toBe(200);
  });

  it('WORKFLOW-GUARD, T: a task with an open question says so and cannot be completed until it is closed', async () => {
    const task = await ada.make('POST', '/tasks', { title: 'guarded', workspace_id: '' });
    const session = await ada.make('POST', `/tasks/${task.id}/sessions`);
    const asked = await ada.make('POST', '/clarification/request', { session_id: session.id, questions: QUESTIONS });
    expect((await ada.get(`/tasks/${task.id}`)).json).toMatchObject({
      task_pending_action: 'clarification',
      primary_session_pending_action: 'clarification',
    });
    expect(await ada.post(`/tasks/${task.id}/complete`)).toMatchObject({ status: 409, json: { code: 'conflict' } });
    await ada.make('POST', `/clarification/${asked.pending_id}/cancel`);
    expect(await ada.post(`/tasks/${task.id}/complete`)).toMatchObject({ status: 200, json: { state: 'completed' } });
  });

  it('RESUME: pull is the default and can be asked for; a mode that is not offered is a clear 400, now and later', async () => {
    const task = await ada.make('POST', '/tasks', { title: 'resumed', workspace_id: '' });
    const session = await ada.make('POST', `/tasks/${task.id}/sessions`);
    expect(session.resume).toEqual({ mode: 'pull' });
    const webhook = { resume: { mode: 'webhook' } };
    const refusal = { error: 'resume.mode must be one of pull', code: 'validation_failed' };
    expect(await ada.post(`/tasks/${task.id}/sessions`, webhook)).toMatchObject({ status: 400, json: refusal });
    expect(await ada.send('PATCH', `/task-sessions/${session.id}`, webhook)).toMatchObject({
      status: 400,
      json: refusal,
    });
    const updated = await ada.make('PATCH', `/task-sessions/${session.id}`, { resume: { mode: 'pull' } });
    expect(updated.resume).toEqual({ mode: 'pull' });
  });
});
