import { beforeAll, describe, expect, it } from '@jest/globals';
import { ConflictError, NotFoundError, UnauthorizedError } from '../../src/common/domain-error.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { barrier } from '../support/barrier.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { ALICE, Scenario, soon, type SessionOf } from '../support/scenario.js';
import { Stage } from '../support/stage.js';
import { until } from '../support/until.js';

const never = new AbortController().signal;

describeEachEngine('the queue and the mailbox', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  const fresh = () => new Scenario(database, { env: { REATTACH_MS: '0' } });

  const send = (scenario: Scenario, session: SessionOf, content: string, id?: string, as = ALICE) =>
    scenario.services.messages.admit(
      as,
      session.sessionId,
      { content, ...(id !== undefined && { client_message_id: id }) },
      soon(),
    );

  /** What the agent does next: fetches its next turn, takes it and completes it. */
  async function workOff(scenario: Scenario, session: SessionOf): Promise<string | undefined> {
    const entry = await scenario.mailbox(session);
    if (entry === undefined) return undefined;
    await scenario.services.mailbox.acknowledge(session.agent, session.sessionId, entry.turn.id, soon());
    await scenario.completeTurn(session, entry.turn.id);
    return entry.prompt;
  }

  describe('admission', () => {
    it('MESSAGES: opens a turn at once when nothing holds it back, also the session’s first', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const first = await send(scenario, session, 'one');
      expect(first).toMatchObject({ admission: 'sent', isNew: true, message: { queued: false, author_id: 'alice' } });
      expect(await workOff(scenario, session)).toBe('one');
      const second = await send(scenario, session, 'two');
      expect(second.admission).toBe('sent');
      expect((await scenario.turns(session)).map((turn) => turn.id)).toEqual([
        first.message.turn_id,
        second.message.turn_id,
      ]);
    });

    it('QUEUE: is queued behind a running turn and released, one a turn, in the order of admission', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const turn = await scenario.openTurn(session);
      for (const content of ['one', 'two', 'three']) {
        expect(await send(scenario, session, content)).toMatchObject({
          admission: 'queued',
          message: { queued: true },
        });
        // Even a clock that steps back lets none overtake.
        scenario.services.clock.advance(-60_000);
      }
      expect(await scenario.turns(session)).toHaveLength(1);
      await scenario.completeTurn(session, turn.id);
      expect(await workOff(scenario, session)).toBe('one');
      expect((await scenario.messages(session)).map((message) => message.queued).sort()).toEqual([false, false, true]);
      expect(await workOff(scenario, session)).toBe('two');
      expect(await workOff(scenario, session)).toBe('three');
      expect(await workOff(scenario, session)).toBeUndefined();
      expect(await scenario.turns(session)).toHaveLength(4);
      expect(await scenario.stateOf(session)).toBe('waiting_for_input');
    });

    it('QUEUE: is queued behind an open question of a completed turn, and released by what closes it', async () => {
      const scenario = fresh();
      for (const close of [
        (asked: Parameters<typeof scenario.cancel>[0]) => scenario.cancel(asked),
        (asked: Parameters<typeof scenario.cancel>[0]) => scenario.reject(asked),
        async (asked: Parameters<typeof scenario.cancel>[0]) => {
          await scenario.waiting(asked);
          await scenario.reject(asked);
        },
      ]) {
        const asked = await scenario.asked();
        const [turn] = await scenario.turns(asked);
        await scenario.completeTurn(asked, turn?.id ?? '');
        expect((await send(scenario, asked, 'later')).admission).toBe('queued');
        expect(await scenario.turns(asked)).toHaveLength(1);
        await close(asked);
        expect(await workOff(scenario, asked)).toBe('later');
      }
    });

    it('QUEUE: what waited for a running turn goes on waiting for the question that the turn leaves open', async () => {
      const scenario = fresh();
      const asked = await scenario.asked();
      const [turn] = await scenario.turns(asked);
      expect((await send(scenario, asked, 'later')).admission).toBe('queued');
      await scenario.completeTurn(asked, turn?.id ?? '');
      expect(await scenario.turns(asked)).toHaveLength(1);
      expect(await scenario.isActive(asked)).toBe(true);
      await scenario.cancel(asked);
      expect(await workOff(scenario, asked)).toBe('later');
    });

    it('QUEUE: an answer goes before the messages that waited for it', async () => {
      const scenario = fresh();
      const asked = await scenario.asked();
      await send(scenario, asked, 'later');
      await scenario.answer(asked);
      expect(await workOff(scenario, asked)).toContain('Question q1');
      expect(await workOff(scenario, asked)).toBe('later');
      expect(await workOff(scenario, asked)).toBeUndefined();
    });

    it('QUEUE: a queued answer does not wait behind a message that the running turn holds back', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const first = await scenario.asked(['a'], session);
      const second = await scenario.asked(['b'], session);
      await send(scenario, session, 'later');
      await scenario.answer(first, ['a']);
      await scenario.cancel(second);
      expect(await workOff(scenario, session)).toContain('Question a');
      expect(await workOff(scenario, session)).toBe('later');
    });

    it('QUEUE: several queued answers come one a turn, in their order', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const asked = [];
      for (const id of ['a', 'b', 'c']) asked.push(await scenario.asked([id], session));
      const [a, b, c] = asked;
      if (!a || !b || !c) throw new Error('three were asked');
      await scenario.answer(b, ['b']);
      await scenario.answer(a, ['a']);
      await scenario.cancel(c);
      expect(await scenario.turns(session)).toHaveLength(2);
      // What closes in the turn of the first releases no other: that turn is running.
      await scenario.cancel(await scenario.asked(['d'], session));
      expect(await scenario.turns(session)).toHaveLength(2);
      expect(await workOff(scenario, session)).toContain('Question b');
      expect(await workOff(scenario, session)).toContain('Question a');
      expect(await workOff(scenario, session)).toBeUndefined();
    });

    it('QUEUE/SUPERSEDE: a superseded question holds nothing back, and POST turns is never queued', async () => {
      const scenario = fresh();
      const asked = await scenario.asked();
      await send(scenario, asked, 'waits');
      const next = await scenario.openTurn(asked, 'at once');
      expect(await scenario.turns(asked)).toHaveLength(2);
      expect((await scenario.mailbox(asked))?.prompt).toBe('at once');
      await scenario.completeTurn(asked, next.id);
      await scenario.services.mailbox.acknowledge(asked.agent, asked.sessionId, next.id, soon());
      expect(await workOff(scenario, asked)).toBe('waits');
    });

    it('QUEUE/R6: the queue survives a restart', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const turn = await scenario.openTurn(session);
      await send(scenario, session, 'later');
      const next = scenario.restarted();
      await next.completeTurn(session, turn.id);
      expect(await workOff(next, session)).toBe('later');
    });

    it('MESSAGES: a session that has ended refuses, one that is not there is not found, and neither keeps anything', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      await scenario.end(session);
      await expect(send(scenario, session, 'late')).rejects.toThrow(ConflictError);
      await expect(send(scenario, { ...session, sessionId: 'none' }, 'late')).rejects.toThrow(NotFoundError);
      expect(await scenario.messages(session)).toEqual([]);
    });

    it('MESSAGES: an agent’s own message is appended to the current turn, whatever its state, and opens none', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      await expect(send(scenario, session, 'hm', undefined, session.agent)).rejects.toThrow(ConflictError);
      const turn = await scenario.openTurn(session);
      await scenario.completeTurn(session, turn.id);
      const sent = await send(scenario, session, 'hm', undefined, session.agent);
      expect(sent).toMatchObject({
        admission: 'sent',
        message: { turn_id: turn.id, author_type: 'agent', author_id: session.sessionId, queued: false },
      });
      expect(await scenario.turns(session)).toHaveLength(1);
      expect(await scenario.mailbox(session)).toBeUndefined();
    });

    it('MESSAGES: a late message leaves the old question as it is', async () => {
      const scenario = fresh();
      const asked = await scenario.asked();
      const turn = await scenario.openTurn(asked);
      await scenario.completeTurn(asked, turn.id);
      const before = await scenario.snapshotOf(asked);
      expect((await send(scenario, asked, 'what I meant')).admission).toBe('sent');
      expect(await scenario.snapshotOf(asked)).toEqual(before);
      expect(await scenario.isActive(asked)).toBe(false);
    });
  });

  describe('the same client_message_id again', () => {
    it('MESSAGE-ID: gives the first reply and nothing new: sent, queued, released, ended and after a restart', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const sent = await send(scenario, session, 'one', 'id-1');
      const queued = await send(scenario, session, 'two', 'id-2');
      expect([sent.admission, queued.admission]).toEqual(['sent', 'queued']);
      const again = async (by: Scenario) => {
        by.services.clock.advance(1_000);
        by.published.length = 0;
        const before = await by.snapshot(session);
        expect(await send(by, session, 'one', 'id-1')).toEqual({ ...sent, isNew: false });
        expect(await send(by, session, 'two', 'id-2')).toEqual({ ...queued, isNew: false });
        expect(await by.snapshot(session)).toEqual(before);
        expect(by.published).toEqual([]);
      };
      await again(scenario);
      await workOff(scenario, session);
      expect((await scenario.mailbox(session))?.prompt).toBe('two');
      await again(scenario);
      await scenario.end(session);
      await again(scenario);
      await again(scenario.restarted());
    });

    it('MESSAGE-ID: with other content it is a conflict, and in another session another message', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      await send(scenario, session, 'one', 'id');
      const before = await scenario.snapshot(session);
      await expect(send(scenario, session, 'two', 'id')).rejects.toThrow(ConflictError);
      expect(await scenario.snapshot(session)).toEqual(before);
      expect(await send(scenario, await scenario.session(), 'two', 'id')).toMatchObject({ isNew: true });
    });

    it('MESSAGE-ID/SERIAL: sent many times at one instant it is admitted once', async () => {
      const stage = new Stage();
      const together = barrier(8);
      for (let caller = 0; caller < 8; caller += 1) stage.do('message.admit', ['begin', together]);
      const scenario = new Scenario(database, { wrap: stage.wrap });
      const session = await scenario.session();
      const replies = await Promise.all(Array.from({ length: 8 }, () => send(scenario, session, 'one', 'id')));
      expect(replies.filter((reply) => reply.isNew)).toHaveLength(1);
      expect(new Set(replies.map((reply) => JSON.stringify({ ...reply, isNew: false }))).size).toBe(1);
      expect(await scenario.messages(session)).toHaveLength(1);
      expect(await scenario.turns(session)).toHaveLength(1);
    });
  });

  describe('the mailbox', () => {
    it('MAILBOX: gives the oldest waiting turn again and again until it is acknowledged, also after a restart', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const first = await scenario.openTurn(session, 'one');
      await scenario.openTurn(session, 'two');
      const before = await scenario.snapshot(session);
      for (const by of [scenario, scenario, scenario.restarted()]) {
        expect(await by.mailbox(session)).toMatchObject({ turn: { id: first.id }, prompt: 'one' });
      }
      expect(await scenario.snapshot(session)).toEqual(before);
      const acknowledge = (turnId: string) =>
        scenario.services.mailbox.acknowledge(session.agent, session.sessionId, turnId, soon());
      await acknowledge(first.id);
      const after = await scenario.snapshot(session);
      scenario.services.clock.advance(1_000);
      await acknowledge(first.id);
      expect(await scenario.snapshot(session)).toEqual(after);
      expect((await scenario.mailbox(session))?.prompt).toBe('two');
      await expect(acknowledge('none')).rejects.toThrow(NotFoundError);
    });

    it('MAILBOX: holds no turn that the agent opened itself, nor one without a prompt', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const turn = await scenario.openTurn(session);
      await scenario.services.turns.open(session.agent, session.sessionId, { prompt: 'to myself' }, soon());
      expect(await scenario.mailbox(session)).toBeUndefined();
      const acknowledging = scenario.services.mailbox.acknowledge(session.agent, session.sessionId, turn.id, soon());
      await expect(acknowledging).rejects.toThrow(NotFoundError);
    });

    it('MAILBOX: a read that waits ends with the entry that comes meanwhile', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const reading = scenario.services.mailbox.read(UNSCOPED, session.sessionId, 30, never);
      await scenario.openTurn(session, 'now');
      expect(await reading).toMatchObject({ prompt: 'now' });
    });

    it('MAILBOX: a read that waits ends empty with its time or its connection', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      expect(await scenario.services.mailbox.read(UNSCOPED, session.sessionId, 0.05, never)).toBeUndefined();
      const gone = new AbortController();
      const reading = scenario.services.mailbox.read(UNSCOPED, session.sessionId, 30, gone.signal);
      gone.abort();
      expect(await reading).toBeUndefined();
    });

    it('SHUTDOWN/MAILBOX: a read that waits ends empty when the server stops', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const reading = scenario.services.mailbox.read(UNSCOPED, session.sessionId, 30, never);
      // Asleep, or it would see for itself.
      await new Promise((resolve) => setTimeout(resolve, 50));
      scenario.services.mailbox.onModuleDestroy();
      expect(await reading).toBeUndefined();
      expect(await scenario.services.mailbox.read(UNSCOPED, session.sessionId, 30, never)).toBeUndefined();
    });

    it('MCP-REVOKED/MAILBOX: a read that waits ends with its token', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const reading = scenario.services.mailbox.read(session.agent, session.sessionId, 30, never);
      await scenario.services.sessions.renewAgentToken(ALICE, session.sessionId, soon());
      await expect(reading).rejects.toThrow(UnauthorizedError);
    });

    it('MAILBOX: a read that waits for a session that is deleted meanwhile finds it gone', async () => {
      const scenario = fresh();
      const session = await scenario.session();
      const reading = scenario.services.mailbox.read(UNSCOPED, session.sessionId, 30, never);
      let isOver = false;
      reading.catch(() => (isOver = true));
      await scenario.services.tasks.delete(ALICE, session.taskId, soon());
      await until(() => isOver);
      await expect(reading).rejects.toThrow(NotFoundError);
    });
  });
});
