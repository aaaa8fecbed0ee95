import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller, type Json } from '../support/callers.js';
import { dumpOf } from '../support/dump.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { makeEstate } from '../support/estate.js';

const INSTANT = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
const ID = expect.stringMatching(/^[0-9a-f-]{36}$/);
const idsOf = (things: { id: string }[]): string[] => things.map(({ id }) => id);

describeEachEngine('with authentication enforced', (engine) => {
  let database: TestDatabase;
  let app: RunningApp;
  let alice: RestCaller & { readonly id: string };
  let bob: RestCaller & { readonly id: string };
  beforeAll(async () => {
    database = await engine.createDatabase();
    app = await startApp(database, { authMode: 'enforced' });
    alice = await user();
    bob = await user();
  });
  afterAll(() => app.close());

  async function user(): Promise<RestCaller & { readonly id: string }> {
    const { id, token } = await app.createUser();
    return Object.assign(new RestCaller(app.url, token), { id });
  }

  /** Nobody's workspace, as a server without authentication leaves it. */
  async function unowned(): Promise<string> {
    const { id } = await alice.make('POST', '/workspaces', { name: 'Nobody’s' });
    await database.sql(`UPDATE workspaces SET owner_id = '' WHERE id = $1`, [id]);
    return id;
  }

  it('WORKSPACES: a workspace is its maker’s, and listed for them, oldest first; an unowned one is everybody’s', async () => {
    const first = await alice.make('POST', '/workspaces', { name: 'First' });
    expect(first).toEqual({
      id: ID,
      name: 'First',
      owner_id: alice.id,
      created_at: INSTANT,
      updated_at: first.created_at,
    });
    const second = await alice.make('POST', '/workspaces', { name: '😀 Second' });
    const foreign = await bob.make('POST', '/workspaces', { name: 'Bob’s' });
    const common = await unowned();
    const seen = async (rest: RestCaller) => idsOf((await rest.make('GET', '/workspaces')).workspaces);
    expect(await seen(alice)).toEqual([first.id, second.id, common]);
    expect(await seen(bob)).toEqual([foreign.id, common]);
    const mcp = await McpCaller.open(app.url, '/mcp', bob.token);
    expect(idsOf((await mcp.call('list_workspaces_kandev')).value.workspaces)).toEqual([foreign.id, common]);
  });

  it('TASKS, ACCESS, D5: a task is made where its maker may, and seen as its workspace is', async () => {
    const workspace = await alice.make('POST', '/workspaces', { name: 'Mine' });
    const common = await unowned();
    const input = { title: 'A task', description: 'What there is to do', workspace_id: workspace.id };
    const mine = await alice.make('POST', '/tasks', input);
    expect(mine).toEqual({
      id: ID,
      ...input,
      state: 'open',
      created_at: INSTANT,
      updated_at: mine.created_at,
      task_pending_action: null,
      primary_session_pending_action: null,
    });
    expect((await alice.get(`/tasks/${mine.id}`)).json).toEqual(mine);
    const before = await dumpOf(database);
    for (const workspaceId of [workspace.id, randomUUID(), 'no id at all']) {
      const refused = await bob.post('/tasks', { title: 'B', workspace_id: workspaceId });
      expect([refused.status, refused.json]).toEqual([404, { error: 'workspace not found', code: 'not_found' }]);
    }
    const unsaid = await alice.post('/tasks', { title: 'Where?' });
    expect([unsaid.status, unsaid.json.code]).toEqual([400, 'validation_failed']);
    expect(unsaid.json.error).toMatch(/^workspace_id is required/);
    expect(await dumpOf(database)).toEqual(before);

    const everybodys = await alice.make('POST', '/tasks', { title: 'For all', workspace_id: '' });
    const inCommon = await bob.make('POST', '/tasks', { title: 'In common', workspace_id: common });
    const dangling = await alice.make('POST', '/tasks', { title: 'Dangling', workspace_id: workspace.id });
    await database.sql('UPDATE tasks SET workspace_id = $2 WHERE id = $1', [dangling.id, randomUUID()]);
    for (const [rest, reachable] of [
      [alice, [true, true, true, true]],
      [bob, [false, true, true, true]],
    ] as const) {
      const tasks = [mine, everybodys, inCommon, dangling];
      const statuses = await Promise.all(tasks.map(async ({ id }) => (await rest.get(`/tasks/${id}`)).status));
      expect(statuses).toEqual(reachable.map((isReached) => (isReached ? 200 : 404)));
      const listed = idsOf((await rest.make('GET', '/tasks?limit=200')).tasks);
      expect(tasks.map(({ id }) => listed.includes(id))).toEqual(reachable);
    }
  });

  it('TASKS, L9, L10: the list gives every task once, oldest first, by pages of any size, narrowed to a workspace', async () => {
    const { id: workspaceId } = await alice.make('POST', '/workspaces', { name: 'Pages' });
    const made: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      made.push((await alice.make('POST', '/tasks', { title: `Task ${n}`, workspace_id: workspaceId })).id);
    }
    // At one instant: then the id decides.
    await database.sql(`UPDATE tasks SET created_at = '2026-01-01T00:00:00.000Z' WHERE workspace_id = $1`, [
      workspaceId,
    ]);
    const expected = [...made].sort();
    for (const limit of [1, 2, 4, 5, 6]) {
      const seen: string[] = [];
      let cursor = '';
      do {
        const query = new URLSearchParams({ workspace_id: workspaceId, limit: String(limit), cursor });
        const page = await alice.make('GET', `/tasks?${query.toString()}`);
        expect(page.tasks.length).toBeLessThanOrEqual(limit);
        seen.push(...idsOf(page.tasks));
        cursor = page.next_cursor;
      } while (cursor !== '');
      expect(seen).toEqual(expected);
    }
  });

  it('TASKS: a task is deleted with all that belongs to it, for its readers at once', async () => {
    const estate = await makeEstate(alice);
    const gone = await alice.send('DELETE', `/tasks/${estate.taskId}`);
    expect([gone.status, gone.text]).toEqual([204, '']);
    for (const path of [
      `/tasks/${estate.taskId}`,
      `/task-sessions/${estate.sessionId}`,
      `/task-sessions/${estate.sessionId}/messages`,
      `/clarification/${estate.pendingId}`,
    ]) {
      expect((await alice.get(path)).status).toBe(404);
    }
    // The agent's token went with its session.
    expect((await new RestCaller(app.url, estate.agentToken).get(`/task-sessions/${estate.sessionId}`)).status).toBe(
      401,
    );
    const left = JSON.stringify(await dumpOf(database));
    for (const id of [estate.taskId, estate.sessionId, estate.turnId, estate.pendingId]) expect(left).not.toContain(id);
    expect((await alice.send('DELETE', `/tasks/${estate.taskId}`)).status).toBe(404);
  });

  it('SESSIONS, AGENT: the agent’s token is shown once, and a new one ends the old', async () => {
    const estate = await makeEstate(alice);
    const path = `/task-sessions/${estate.sessionId}`;
    expect((await alice.get(path)).text).not.toContain(estate.agentToken);
    const { agent_token: token, ...rest } = await alice.make('POST', `${path}/agent-token`);
    expect(rest).toEqual({});
    expect((await new RestCaller(app.url, estate.agentToken).get(path)).status).toBe(401);
    expect((await new RestCaller(app.url, token).get(path)).status).toBe(200);
    expect(JSON.stringify(await dumpOf(database))).not.toContain(token);
  });
});

describeEachEngine('with authentication off', (engine) => {
  let app: RunningApp;
  let rest: RestCaller;
  beforeAll(async () => {
    app = await startApp(await engine.createDatabase());
    rest = new RestCaller(app.url);
  });
  afterAll(() => app.close());

  it('WORKSPACES, TASKS: what is made belongs to nobody, and a task need not say where it is', async () => {
    const workspace = await rest.make('POST', '/workspaces', { name: 'Ours' });
    expect(workspace.owner_id).toBe('');
    const task = await rest.make('POST', '/tasks', { title: 'Anywhere' });
    expect(task).toMatchObject({ workspace_id: '', description: '' });
    const refused = await rest.post('/tasks', { title: 'Elsewhere', workspace_id: randomUUID() });
    expect([refused.status, refused.json.error]).toEqual([404, 'workspace not found']);
  });

  describe('RESUME', () => {
    const pull = { mode: 'pull' };
    let task: Json;
    beforeAll(async () => {
      task = await rest.make('POST', '/tasks', { title: 'Resumed' });
    });

    it('an agent that does not wait fetches its answers, unless its session says otherwise', async () => {
      const session = await rest.make('POST', `/tasks/${task.id}/sessions`, {});
      expect(session).toMatchObject({ resume: pull, is_primary: true, state: 'created' });
      const said = await rest.make('POST', `/tasks/${task.id}/sessions`, { resume: pull });
      expect(said).toMatchObject({ resume: pull, is_primary: false });
      expect((await rest.make('PATCH', `/task-sessions/${said.id}`, { resume: pull })).resume).toEqual(pull);
    });

    it('a mode that is not offered is a 400 that says which are', async () => {
      const refused = await rest.post(`/tasks/${task.id}/sessions`, { resume: { mode: 'push' } });
      expect([refused.status, refused.json]).toEqual([
        400,
        { error: 'resume.mode must be one of pull, webhook', code: 'validation_failed' },
      ]);
    });
  });
});
