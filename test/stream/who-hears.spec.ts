import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { UNSCOPED, type Caller } from '../../src/identity/caller.js';
import { findTaskHomes } from '../../src/tasks/persistence/task-homes.query.js';
import { findVisibleTask } from '../../src/tasks/persistence/tasks.repository.js';
import { isVisibleHome } from '../../src/tasks/persistence/visible-tasks.predicate.js';
import { startApp, type RunningApp } from '../support/app.js';
import { RestCaller } from '../support/callers.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { makeEstate, type Estate } from '../support/estate.js';
import { EventClient } from '../support/event-client.js';
import { soon } from '../support/scenario.js';
import { until } from '../support/until.js';

const AT = '2026-01-31T09:00:00.000Z';

describeEachEngine('EVENTS-WHO: who is told', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  describe('over the wire', () => {
    const PLACES = ['of ada', 'of bob', 'unowned', 'in no workspace', 'dangling'] as const;
    type Place = (typeof PLACES)[number];
    let app: RunningApp;
    let users: Record<'ada' | 'bob', { id: string; token: string }>;
    let estates: Record<Place, Estate>;
    let streams: Record<string, EventClient>;
    beforeAll(async () => {
      app = await startApp(database, { authMode: 'enforced' });
      users = { ada: await app.createUser(), bob: await app.createUser() };
      const of = (name: 'ada' | 'bob') => new RestCaller(app.url, users[name].token);
      estates = {
        'of ada': await makeEstate(of('ada')),
        'of bob': await makeEstate(of('bob')),
        unowned: await makeEstate(of('ada')),
        'in no workspace': await makeEstate(of('ada'), { workspaceId: '' }),
        dangling: await makeEstate(of('ada')),
      };
      await database.sql("UPDATE workspaces SET owner_id = '' WHERE id = $1", [estates.unowned.workspaceId]);
      await database.sql("UPDATE tasks SET workspace_id = 'gone' WHERE id = $1", [estates.dangling.taskId]);
      streams = {
        ada: await EventClient.open(app.url, { token: users.ada.token }),
        bob: await EventClient.open(app.url, { token: users.bob.token }),
        'the agent of ada’s task': await EventClient.open(app.url, { token: estates['of ada'].agentToken }),
        'the agent of no workspace': await EventClient.open(app.url, { token: estates['in no workspace'].agentToken }),
      };
    });
    afterAll(() => app.close());

    it.each([
      ['ada', ['of ada', 'unowned', 'in no workspace', 'dangling']],
      ['bob', ['of bob', 'unowned', 'in no workspace', 'dangling']],
      ['the agent of ada’s task', ['of ada']],
      ['the agent of no workspace', ['in no workspace']],
    ] as const)('%s: %j', async (listener, expected) => {
      const said = new Map<string, Place>();
      for (const place of PLACES) {
        const agent = new RestCaller(app.url, estates[place].agentToken);
        const path = `/task-sessions/${estates[place].sessionId}/messages`;
        said.set((await agent.make('POST', path, { content: 'Something' })).message.id, place);
      }
      // One more for each that everything before has been told by.
      const marks = await Promise.all(
        (['in no workspace', 'of ada'] as const).map(async (place) => {
          const agent = new RestCaller(app.url, estates[place].agentToken);
          const path = `/task-sessions/${estates[place].sessionId}/messages`;
          return (await agent.make('POST', path, { content: 'A mark' })).message.id as string;
        }),
      );
      const stream = streams[listener] as EventClient;
      const heard = () => stream.events.map(({ data }) => data.message_id as string);
      await until(() => marks.some((mark) => heard().includes(mark)));
      expect(heard().flatMap((id) => said.get(id) ?? [])).toEqual(expected);
    });

    it('another session’s agent of the same task hears nothing', async () => {
      const { taskId } = estates['of ada'];
      const ada = new RestCaller(app.url, users.ada.token);
      const other = await ada.make('POST', `/tasks/${taskId}/sessions`, {});
      const stream = await EventClient.open(app.url, { token: other.agent_token });
      const theirs = `/task-sessions/${estates['of ada'].sessionId}/messages`;
      await new RestCaller(app.url, estates['of ada'].agentToken).make('POST', theirs, { content: 'Not for it' });
      await ada.make('PATCH', `/task-sessions/${other.id}`, { state: 'running' });
      await stream.event('session.state_changed');
      expect(stream.types).toEqual(['session.state_changed']);
      expect(stream.events[0]?.data.session_id).toBe(other.id);
      await stream.close();
    });

    it('the owner of a workspace is not in its events', () => {
      const texts = JSON.stringify(Object.values(streams).map(({ events }) => events));
      for (const { id } of Object.values(users)) expect(texts).not.toContain(id);
    });

    it('whoever gets a workspace hears of it from then on', async () => {
      const { workspaceId, sessionId, agentToken } = estates['of bob'];
      const { ada } = streams as { ada: EventClient };
      const say = async () =>
        (
          await new RestCaller(app.url, agentToken).make('POST', `/task-sessions/${sessionId}/messages`, {
            content: 'Something',
          })
        ).message.id as string;
      await say();
      await streams['bob']?.event('session.message.added', { session_id: sessionId });
      await database.sql('UPDATE workspaces SET owner_id = $2 WHERE id = $1', [workspaceId, users.ada.id]);
      await ada.event('session.message.added', { message_id: await say() });
      expect(ada.events.filter(({ data }) => data.session_id === sessionId)).toHaveLength(1);
    });
  });

  it('of a task that is gone no user hears what had not been looked at; its agent’s stream ends', async () => {
    const app = await startApp({ url: await engine.createUrl() }, { authMode: 'enforced' });
    try {
      const { token } = await app.createUser();
      const hers = new RestCaller(app.url, token);
      const gone = await makeEstate(hers);
      await hers.make('DELETE', `/tasks/${gone.taskId}`);
      const { pendingId } = await makeEstate(hers);
      const stream = await EventClient.open(app.url, { token, lastEventId: '1-0' });
      await stream.event('clarification.requested', { pending_id: pendingId });
      expect(JSON.stringify(stream.events)).not.toContain(gone.taskId);
      expect(stream.types).not.toContain('resync');

      const ending = await makeEstate(hers);
      const agents = await EventClient.open(app.url, { token: ending.agentToken });
      await hers.make('DELETE', `/tasks/${ending.taskId}`);
      expect(await agents.end()).toBe('whole');
      await stream.close();
    } finally {
      await app.close();
    }
  });

  it('ACCESS: the rule for a task that has been read and the rule in SQL agree on every situation', async () => {
    const callers: Caller[] = [
      UNSCOPED,
      ...['ada', 'bob', ''].map((userId): Caller => ({ kind: 'user', userId, userName: userId, tokenId: 't' })),
      { kind: 'agent', sessionId: 'a-session', tokenId: 't' },
    ];
    const owners: (string | undefined)[] = [undefined, '', 'ada', 'bob', 'ADA', ' ada'];
    const seen: [string, string, boolean, boolean][] = [];
    for (const owner of owners) {
      for (const workspaceId of ['', randomUUID()]) {
        if (owner !== undefined) {
          await database.sql(
            'INSERT INTO workspaces (id, name, owner_id, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)',
            [workspaceId, 'W', owner, AT],
          );
        }
        const taskId = randomUUID();
        await database.sql(
          'INSERT INTO tasks (id, workspace_id, title, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)',
          [taskId, workspaceId, 'T', AT],
        );
        const sql = database.reader.within(soon());
        const home = (await findTaskHomes(sql, [taskId], [])).get(taskId);
        if (home === undefined) throw new Error('the task is not found');
        for (const caller of callers) {
          const inSql = (await findVisibleTask(sql, caller, taskId)) !== undefined;
          seen.push([
            `${JSON.stringify(caller)} in ${workspaceId === '' ? 'none' : 'one'} of ${owner ?? 'nobody known'}`,
            taskId,
            isVisibleHome(caller, home),
            inSql,
          ]);
        }
        await database.sql('DELETE FROM workspaces WHERE id = $1', [workspaceId]);
      }
    }
    expect(seen.filter(([, , pure, inSql]) => pure !== inSql)).toEqual([]);
    expect(new Set(seen.map(([, , pure]) => pure)).size).toBe(2);
    expect(seen.length).toBe(owners.length * 2 * callers.length);
  });

  it('where tasks are is found by task and by session, and what is missing is missing', async () => {
    const sql = database.reader.within(soon());
    const [task, other] = [randomUUID(), randomUUID()];
    for (const id of [task, other]) {
      await database.sql(
        'INSERT INTO tasks (id, workspace_id, title, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)',
        [id, 'gone', 'T', AT],
      );
    }
    const session = randomUUID();
    await database.sql('INSERT INTO task_sessions (id, task_id, started_at, updated_at) VALUES ($1, $2, $3, $3)', [
      session,
      other,
      AT,
    ]);
    const home = { workspaceId: 'gone', ownerId: null };
    expect(await findTaskHomes(sql, [task, 'no task'], [session, 'no session'])).toEqual(
      new Map([
        [task, home],
        [other, home],
      ]),
    );
    expect(await findTaskHomes(sql, [], [])).toEqual(new Map());
  });
});
