import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { StreamSettings } from '../../src/stream/stream-settings.js';
import { startApp, type RunningApp } from '../support/app.js';
import { RestCaller } from '../support/callers.js';
import { describeEachEngine } from '../support/engines.js';
import { answersTo, makeEstate, type Estate } from '../support/estate.js';
import { EventClient } from '../support/event-client.js';
import { until } from '../support/until.js';

const REPLAYED = 20;

class ShortMemory extends StreamSettings {
  override readonly replayEvents = REPLAYED;
}

describeEachEngine('EVENTS-REPLAY: connecting again', (engine) => {
  describe('to the same server', () => {
    let app: RunningApp;
    let rest: RestCaller;
    let estate: Estate;
    beforeAll(async () => {
      app = await startApp(
        { url: await engine.createUrl() },
        { overrides: (builder) => builder.overrideProvider(StreamSettings).useValue(new ShortMemory()) },
      );
      rest = new RestCaller(app.url);
      estate = await makeEstate(rest, { workspaceId: '' });
    });
    afterAll(() => app.close());

    const open = (lastEventId?: string, token?: string) =>
      EventClient.open(app.url, {
        ...(lastEventId !== undefined && { lastEventId }),
        ...(token !== undefined && { token }),
      });

    /** Tells nothing but messages: by the agent, so that no turn comes with them. */
    async function say(count: number, { sessionId, agentToken }: Estate = estate): Promise<string[]> {
      const agent = new RestCaller(app.url, agentToken);
      const ids: string[] = [];
      for (let index = 0; index < count; index += 1) {
        const { message } = await agent.make('POST', `/task-sessions/${sessionId}/messages`, { content: `${index}` });
        ids.push(message.id);
      }
      return ids;
    }

    const told = (stream: EventClient) => stream.events.map(({ data }) => data.message_id as unknown);

    it('without an id: what happens from now on, and an id to come back with even before the first event', async () => {
      await say(1);
      const stream = await open();
      await until(() => stream.comments.length > 0);
      expect(stream.events).toEqual([]);
      const { lastEventId } = stream;
      expect(lastEventId).toMatch(/^1-\d+$/);
      await stream.close();
      const missed = await say(2);
      const again = await open(lastEventId);
      await until(() => again.events.length >= 2);
      expect(told(again)).toEqual(missed);
      await again.close();
    });

    it('with the last id: exactly what was missed, with the same ids as for one that was there, then what follows', async () => {
      const [witness, leaver] = [await open(), await open()];
      await say(3);
      await until(() => leaver.events.length === 3);
      await leaver.close();
      await say(4);
      const again = await open(leaver.lastEventId);
      await say(2);
      await until(() => witness.events.length === 9 && again.events.length === 6);
      expect([...leaver.events, ...again.events].map(({ id }) => id)).toEqual(witness.events.map(({ id }) => id));
      expect(told(again)).toEqual(told(witness).slice(3));
      await Promise.all([witness.close(), again.close()]);
    });

    it('with the newest id: nothing, then what follows', async () => {
      const stream = await open();
      await say(1);
      await until(() => stream.events.length === 1);
      const again = await open(stream.lastEventId);
      const [next] = await say(1);
      await until(() => again.events.length > 0);
      expect(told(again)).toEqual([next]);
      await Promise.all([stream.close(), again.close()]);
    });

    it('EVENTS-WHO: of what was missed, what the caller may see', async () => {
      const ada = await app.createUser();
      const hers = await makeEstate(new RestCaller(app.url, ada.token));
      const { token } = await app.createUser();
      const stream = await open(undefined, token);
      await until(() => stream.lastEventId !== '');
      await stream.close();
      const open1 = await say(1);
      await say(2, hers);
      const open2 = await say(1);
      const own = await open(stream.lastEventId, token);
      await until(() => own.events.length >= 2);
      expect(told(own)).toEqual([...open1, ...open2]);
      await own.close();
    });

    it('the oldest that is still known, and one before it', async () => {
      const stream = await open();
      await say(REPLAYED + 1);
      await until(() => stream.events.length === REPLAYED + 1);
      const [first, second] = stream.events.map(({ id }) => id);
      const complete = await open(first);
      await until(() => complete.events.length === REPLAYED);
      expect(complete.events).toEqual(stream.events.slice(1));
      await say(1);
      const late = await open(first);
      await until(() => late.events.length > 0);
      expect(late.types).toEqual(['resync']);
      const inTime = await open(second);
      await until(() => inTime.events.length === REPLAYED);
      expect(inTime.types).not.toContain('resync');
      await Promise.all([stream, complete, late, inTime].map((each) => each.close()));
    });

    it.each([
      ['of another start', '7-1'],
      ['of a start long ago', '0-0'],
      ['not told yet', '1-999999999'],
      ['too large for a number', '1-99999999999999999999'],
      ['negative', '1--1'],
      ['not a number', '1-x'],
      ['of another product', 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'],
      ['several', '1-1, 1-2'],
      ['a word', 'undefined'],
    ])('an id that is %s: look again, then what happens from now on', async (_, id) => {
      const stream = await open(id);
      await until(() => stream.events.length > 0);
      expect(stream.events).toEqual([{ id: stream.lastEventId, type: 'resync', data: {} }]);
      const [next] = await say(1);
      await until(() => stream.events.length > 1);
      expect(told(stream)).toEqual([undefined, next]);
      await stream.close();
    });

    it('an id of another start whose number this one has as well is not taken for its own', async () => {
      const stream = await open();
      await say(2);
      await until(() => stream.events.length === 2);
      for (const epoch of ['0', '2', '11']) {
        const stale = await open(stream.events[0]?.id.replace(/^1-/, `${epoch}-`));
        await until(() => stale.events.length > 0);
        expect(stale.types).toEqual(['resync']);
        await stale.close();
      }
      await stream.close();
    });

    it('an empty id is none', async () => {
      const stream = await open('');
      const [next] = await say(1);
      await until(() => stream.events.length > 0);
      expect(told(stream)).toEqual([next]);
      await stream.close();
    });

    it('everybody at once, from everywhere: each gets its own rest', async () => {
      const stream = await open();
      await say(REPLAYED);
      await until(() => stream.events.length === REPLAYED);
      const again = await Promise.all(stream.events.map(({ id }) => open(id)));
      await say(1);
      await until(() => stream.events.length === REPLAYED + 1);
      // The very first may have been one event too late.
      for (const [index, each] of [...again.entries()].slice(1)) {
        await until(() => each.events.length === REPLAYED - index);
        expect(each.events).toEqual(stream.events.slice(index + 1));
      }
      await Promise.all([stream, ...again].map((each) => each.close()));
    });
  });

  it('to a server that was started again: look again; and what its recovery gave back can be replayed', async () => {
    const database = await engine.createDatabase();
    let app = await startApp(database);
    try {
      const estate = await makeEstate(new RestCaller(app.url), { workspaceId: '' });
      const before = await EventClient.open(app.url, { lastEventId: '1-0' });
      await before.event('clarification.requested');
      await app.close();
      await before.end();

      // What a process that was killed between claim and hand-over leaves.
      const { rows } = await database.sql<{ id: string; metadata: string }>(
        "SELECT id, metadata FROM task_session_messages WHERE type = 'clarification_request'",
      );
      for (const row of rows) {
        const response = { question_id: 'q1', selected_options: ['left'], custom_text: '' };
        const claimed = { status: 'answered', response, response_delivery_pending: true };
        const metadata = JSON.stringify({ ...(JSON.parse(row.metadata) as object), ...claimed });
        await database.sql('UPDATE task_session_messages SET metadata = $2 WHERE id = $1', [row.id, metadata]);
      }

      app = await startApp(database);
      const stale = await EventClient.open(app.url, { lastEventId: before.lastEventId });
      await until(() => stale.events.length > 0);
      expect(stale.types[0]).toBe('resync');
      expect(stale.lastEventId).toMatch(/^2-/);

      const fresh = await EventClient.open(app.url, { lastEventId: '2-0' });
      const { id, data } = await fresh.event('clarification.restored');
      expect(id).toMatch(/^2-\d$/);
      expect(data).toMatchObject({ pending_id: estate.pendingId, pending_action: 'clarification' });
      expect(data.pending_action_revision.epoch).toBe(2);
      expect(fresh.types).not.toContain('resync');

      await new RestCaller(app.url).make('POST', `/clarification/${estate.pendingId}/respond`, answersTo(['q1']));
      await stale.event('clarification.resolved', { pending_id: estate.pendingId });
      await fresh.event('clarification.resolved', { pending_id: estate.pendingId });
    } finally {
      await app.close();
    }
  });
});
