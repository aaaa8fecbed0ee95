import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { EventBus } from '../../src/events/event-bus.js';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller } from '../support/callers.js';
import { describeEachEngine } from '../support/engines.js';
import { answersTo, ask, makeEstate, type Estate } from '../support/estate.js';
import { EventClient, type ServerEvent } from '../support/event-client.js';
import { readerWith } from '../support/reader-with.js';
import { Stage } from '../support/stage.js';
import { until } from '../support/until.js';
import { WebhookReceiver } from '../support/webhook-receiver.js';

const WHERE_TASKS_ARE = /FROM tasks t LEFT JOIN workspaces/;
const WHO_IS_ASKED = /AS session_id, s\.task_id/;

describeEachEngine('EVENTS: what is told of what happens', (engine) => {
  const stage = new Stage();
  const undisturbed = (): void | Promise<void> => undefined;
  let beforeRead: (sql: string) => void | Promise<void> = undisturbed;
  const failReads = (which: RegExp): void => {
    beforeRead = (sql) => {
      if (which.test(sql)) throw new Error('the database blinked');
    };
  };
  let app: RunningApp;
  let rest: RestCaller;
  let ada: { id: string; token: string };
  let stream: EventClient;
  beforeAll(async () => {
    app = await startApp(
      { url: await engine.createUrl() },
      {
        wrap: stage.wrap,
        wrapReader: (inner) => readerWith(inner, (sql) => beforeRead(sql)),
        env: { REATTACH_MS: '0', WEBHOOK_ALLOW_PRIVATE: 'true' },
      },
    );
    rest = new RestCaller(app.url);
    ada = await app.createUser('ada');
    stream = await EventClient.open(app.url);
  });
  afterEach(() => {
    beforeRead = undisturbed;
  });
  afterAll(() => app.close());

  const estateOf = () => makeEstate(rest, { workspaceId: '' });
  const respond = (pendingId: string, outcome: object, by = rest) =>
    by.make('POST', `/clarification/${pendingId}/respond`, outcome);
  const inSession = ({ sessionId }: Pick<Estate, 'sessionId'>): readonly ServerEvent[] =>
    stream.events.filter(({ data }) => data.session_id === sessionId);

  /** Something happens in a session: when it has been told, so has everything before it. */
  async function saySomething({ sessionId }: Pick<Estate, 'sessionId'>): Promise<ServerEvent> {
    const { message } = await rest.make('POST', `/task-sessions/${sessionId}/messages`, { content: 'Something' });
    return stream.event('session.message.added', { message_id: message.id });
  }

  it('an answered question: from its asking to the turn that its answer opens, in order', async () => {
    const estate = await estateOf();
    await respond(estate.pendingId, answersTo(['q1'], 'my secret words'), new RestCaller(app.url, ada.token));
    await stream.event('clarification.resolved', { pending_id: estate.pendingId });
    await saySomething(estate);
    const events = inSession(estate);
    expect(events.map(({ type }) => type)).toEqual([
      'turn.started',
      'session.state_changed',
      'session.message.added',
      'clarification.requested',
      'session.message.updated',
      'turn.completed',
      'turn.started',
      'session.message.added',
      'clarification.resolved',
      'session.message.added',
    ]);
    const { messages } = await rest.make('GET', `/task-sessions/${estate.sessionId}/messages`);
    const { turns } = await rest.make('GET', `/task-sessions/${estate.sessionId}/turns`);
    const ownOf = ({ data }: ServerEvent) => {
      const { task_id, workspace_id, session_id, pending_action, pending_action_revision, ...own } = data;
      expect({ task_id, workspace_id, session_id }).toEqual({
        task_id: estate.taskId,
        workspace_id: '',
        session_id: estate.sessionId,
      });
      expect([null, 'clarification']).toContain(pending_action);
      expect(pending_action_revision).toEqual({ epoch: 1, sequence: expect.any(Number) });
      return own;
    };
    expect(events.map(ownOf)).toEqual([
      { turn_id: estate.turnId },
      { state: 'running' },
      { message_id: messages[0].id },
      { pending_id: estate.pendingId },
      { message_id: messages[0].id },
      { turn_id: estate.turnId },
      { turn_id: turns[1].id },
      { message_id: messages[1].id },
      { pending_id: estate.pendingId, status: 'answered', actor: `user:${ada.id}`, surface: 'rest' },
      { message_id: messages[2].id },
    ]);
    expect(JSON.stringify(events)).not.toContain('words');
  });

  it('the ids are the epoch of this start and a number that grows by one', async () => {
    await saySomething(await estateOf());
    const numbers = stream.events.map(({ id }) => /^1-(\d+)$/.exec(id)?.[1]).map(Number);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  });

  it('a declined question over MCP, and a cancelled one', async () => {
    const estate = await estateOf();
    const mcp = await McpCaller.open(app.url);
    await mcp.call('answer_question_kandev', { pending_id: estate.pendingId, rejected: true });
    const { data } = await stream.event('clarification.resolved', { pending_id: estate.pendingId });
    expect(data).toMatchObject({ status: 'rejected', actor: 'unscoped', surface: 'mcp', pending_action: null });

    const other = await ask(rest, estate.sessionId, ['q2']);
    await rest.make('POST', `/clarification/${other}/cancel`);
    await stream.event('clarification.cancelled', { pending_id: other });
  });

  it('a loser’s answer is no event', async () => {
    const estate = await estateOf();
    await respond(estate.pendingId, answersTo(['q1']));
    await respond(estate.pendingId, { rejected: true });
    await saySomething(estate);
    expect(inSession(estate).filter(({ type }) => type === 'clarification.resolved')).toHaveLength(1);
  });

  it('an agent that waits and leaves, and a session that ends', async () => {
    const estate = await estateOf();
    await new RestCaller(app.url, estate.agentToken).get(`/clarification/${estate.pendingId}/wait?timeout=0`);
    await stream.event('session.state_changed', { session_id: estate.sessionId, state: 'waiting_for_input' });
    await stream.event('clarification.detached', { pending_id: estate.pendingId });
    await rest.make('PATCH', `/task-sessions/${estate.sessionId}`, { state: 'failed' });
    const { data } = await stream.event('clarification.expired', { pending_id: estate.pendingId });
    expect(data.pending_action).toBeNull();
    await stream.event('session.state_changed', { session_id: estate.sessionId, state: 'failed' });
  });

  it('a resolution is told once it has been handed over, and not before', async () => {
    const estate = await estateOf();
    const held = stage.hold('delivery.hand-over', 'begin');
    const answer = respond(estate.pendingId, answersTo(['q1']));
    await held.reached;
    expect((await rest.get(`/clarification/${estate.pendingId}`)).json.status).toBe('answered');
    await saySomething(await estateOf());
    expect(inSession(estate).map(({ type }) => type)).toEqual([
      'turn.started',
      'session.state_changed',
      'session.message.added',
      'clarification.requested',
    ]);
    held.release();
    await answer;
    await stream.event('clarification.resolved', { pending_id: estate.pendingId });
  });

  it('an answer that could not be handed over is told as given back', async () => {
    const estate = await estateOf();
    stage.fail('delivery.hand-over', 'begin', new Error('placed by hand'));
    expect((await rest.post(`/clarification/${estate.pendingId}/respond`, answersTo(['q1']))).status).toBe(500);
    const { data } = await stream.event('clarification.restored', { pending_id: estate.pendingId });
    expect(data.pending_action).toBe('clarification');
    await saySomething(await estateOf());
    expect(inSession(estate).map(({ type }) => type)).not.toContain('clarification.resolved');
  });

  it('an answer that a waiting agent takes over in the same turn', async () => {
    const estate = await estateOf();
    const waiting = new RestCaller(app.url, estate.agentToken).make('GET', `/clarification/${estate.pendingId}/wait`);
    await stream.event('session.state_changed', { session_id: estate.sessionId, state: 'waiting_for_input' });
    await respond(estate.pendingId, answersTo(['q1']));
    await waiting;
    const { data } = await stream.event('clarification.resolved', { pending_id: estate.pendingId });
    expect(data).toMatchObject({ status: 'answered', surface: 'rest', pending_action: null });
    await saySomething(await estateOf());
    expect(inSession(estate).map(({ type, data: { state } }) => state ?? type)).toEqual([
      'turn.started',
      'running',
      'session.message.added',
      'clarification.requested',
      'waiting_for_input',
      'session.message.updated',
      'running',
      'clarification.resolved',
    ]);
  });

  it('an answer for a webhook: nothing until the agent has accepted it, and given back when it does not', async () => {
    const agent = await WebhookReceiver.start();
    try {
      const { sessionId, turnId, pendingId } = await estateOf();
      const type = { session_id: sessionId };
      const told = () => inSession({ sessionId }).map((event) => event.type);
      await rest.make('PATCH', `/task-sessions/${sessionId}`, { resume: { mode: 'webhook', url: agent.url() } });
      await stream.event('clarification.requested', { pending_id: pendingId });
      const asked = told().length;

      agent.react({ status: 500 });
      expect((await rest.post(`/clarification/${pendingId}/respond`, answersTo(['q1']))).status).toBe(500);
      await stream.event('clarification.restored', { pending_id: pendingId });
      await saySomething(await estateOf());
      expect(told().slice(asked)).toEqual(['session.message.updated', 'clarification.restored']);

      const held = stage.hold('delivery.publish', 'begin');
      const answer = respond(pendingId, answersTo(['q1']));
      await held.reached;
      expect(agent.received).toHaveLength(2);
      await saySomething(await estateOf());
      expect(told().slice(asked + 2)).toEqual([]);
      held.release();
      expect((await answer).delivered).toBe(true);
      await stream.event('clarification.resolved', { ...type, pending_action: null });
      await stream.event('turn.completed', { turn_id: turnId });
      expect(told().slice(asked + 2)).toEqual([
        'session.message.updated',
        'turn.completed',
        'turn.started',
        'session.message.added',
        'clarification.resolved',
      ]);
    } finally {
      await agent.close();
    }
  });

  it('EVENTS-REVISION: whatever opens or ends a question, an event shows what the session waits for after it', async () => {
    const { pendingId, sessionId, turnId, agentToken } = await estateOf();
    const agent = new RestCaller(app.url, agentToken);
    const shown = async (type: string, where: object) =>
      (await stream.event(type, { session_id: sessionId, ...where })).data.pending_action;
    expect(await shown('clarification.requested', { pending_id: pendingId })).toBe('clarification');
    await agent.make('POST', `/task-sessions/${sessionId}/turns/${turnId}/complete`);
    expect(await shown('turn.completed', { turn_id: turnId })).toBe('clarification');
    expect(await shown('clarification.detached', { pending_id: pendingId })).toBe('clarification');
    const turn = await agent.make('POST', `/task-sessions/${sessionId}/turns`, {});
    expect(await shown('turn.started', { turn_id: turn.id })).toBeNull();
    const cancelled = await ask(agent, sessionId, ['q2']);
    expect(await shown('clarification.requested', { pending_id: cancelled })).toBe('clarification');
    await agent.make('POST', `/clarification/${cancelled}/cancel`);
    expect(await shown('clarification.cancelled', { pending_id: cancelled })).toBeNull();
    const expired = await ask(agent, sessionId, ['q3']);
    await rest.make('PATCH', `/task-sessions/${sessionId}`, { state: 'completed' });
    expect(await shown('clarification.expired', { pending_id: expired })).toBeNull();
    expect(await shown('session.state_changed', { state: 'completed' })).toBeNull();
  });

  it('EVENTS-REVISION: a pending action is numbered with those of the REST snapshots, the later look the higher', async () => {
    const estate = await estateOf();
    const snapshot = async () => (await rest.make('GET', `/tasks/${estate.taskId}/task-sessions`)).sessions[0];
    const looks = [(await stream.event('clarification.requested', { pending_id: estate.pendingId })).data];
    looks.push(await snapshot());
    await respond(estate.pendingId, { rejected: true });
    looks.push((await stream.event('clarification.resolved', { pending_id: estate.pendingId })).data);
    looks.push(await snapshot());
    const other = await ask(rest, estate.sessionId, ['q2']);
    looks.push((await stream.event('clarification.requested', { pending_id: other })).data);
    looks.push(await snapshot());
    expect(looks.map((look) => look.pending_action)).toEqual([
      'clarification',
      'clarification',
      null,
      null,
      'clarification',
      'clarification',
    ]);
    const sequences = looks.map((look) => look.pending_action_revision.sequence as number);
    expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
    expect(looks.map((look) => look.pending_action_revision.epoch)).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it('EVENTS-REVISION: where the pending action cannot be read it is left out, the revision is not', async () => {
    const estate = await estateOf();
    await saySomething(estate);
    failReads(WHO_IS_ASKED);
    const { data } = await saySomething(estate);
    expect(data).not.toHaveProperty('pending_action');
    expect(data.pending_action_revision.sequence).toBeGreaterThan(0);
    beforeRead = undisturbed;
    expect((await saySomething(estate)).data.pending_action).toBe('clarification');
  });

  it('EVENTS-WHO: where it cannot be read whose task it is, users are told to look again, once, and nothing else', async () => {
    const hers = await EventClient.open(app.url, { token: ada.token });
    const estate = await estateOf();
    const agents = await EventClient.open(app.url, { token: estate.agentToken });
    await hers.event('clarification.requested', { pending_id: estate.pendingId });
    failReads(WHERE_TASKS_ARE);
    const { id, data } = await saySomething(estate);
    expect(data).not.toHaveProperty('workspace_id');
    await until(() => hers.lastEventId === id && agents.lastEventId === id);
    expect(hers.events.at(-1)).toEqual({ id, type: 'resync', data: {} });
    expect(agents.events.at(-1)).toEqual({ id, type: 'session.message.added', data });
    beforeRead = undisturbed;
    const next = await saySomething(estate);
    await until(() => hers.lastEventId === next.id);
    expect(hers.events.slice(-2).map(({ type }) => type)).toEqual(['resync', 'session.message.added']);
    await Promise.all([hers.close(), agents.close()]);
  });

  it('whoever publishes does not wait for what the events need to be told', async () => {
    const estate = await estateOf();
    await saySomething(estate);
    let release: () => void = () => undefined;
    const isHeld = new Promise<void>((resolve) => (release = resolve));
    let looks = 0;
    beforeRead = (sql) => {
      if (!WHERE_TASKS_ARE.test(sql)) return undefined;
      looks += 1;
      return isHeld;
    };
    const sent: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      const path = `/task-sessions/${estate.sessionId}/messages`;
      sent.push((await rest.make('POST', path, { content: `${count}` })).message.id);
    }
    release();
    await stream.event('session.message.added', { message_id: sent[4] });
    // One for the first, one for all that gathered meanwhile.
    expect(looks).toBe(2);
    expect(
      inSession(estate)
        .slice(-5)
        .map(({ data }) => data.message_id),
    ).toEqual(sent);
  });

  it('an event that is published in whichever moment of a look is told without waiting for another', async () => {
    const bus = app.app.get(EventBus);
    const { taskId, sessionId } = await estateOf();
    const publish = (turnId: string) => bus.publish([{ type: 'turn.started', taskId, sessionId, turnId }]);
    for (let moment = 0; moment < 40; moment += 1) {
      // A look whose last read fails at once ends within so many microtasks, which makes each of them reachable.
      beforeRead = (sql) => {
        if (!WHO_IS_ASKED.test(sql)) return;
        beforeRead = undisturbed;
        let left = moment;
        const step = (): void => (left-- > 0 ? queueMicrotask(step) : publish(`after ${moment}`));
        step();
        throw new Error('the database blinked');
      };
      publish(`before ${moment}`);
      await stream.event('turn.started', { turn_id: `after ${moment}` });
    }
  });
});
