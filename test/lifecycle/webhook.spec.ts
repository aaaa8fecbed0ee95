import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { NotActiveError, TemporarilyUnavailableError } from '../../src/common/domain-error.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { ALICE, soon, stagedScenario, WEBHOOK, type Asked, type Scenario } from '../support/scenario.js';
import { ACCEPTED, NOT_DELIVERED, UNKNOWN } from '../support/scripted-port.js';
import { failWith } from '../support/stage.js';
import { until } from '../support/until.js';

const BOOM = new Error('boom');
const AWAY = new TemporarilyUnavailableError('the database is away');
const RECORDED = { code: 'internal', retryable: false };
const ANSWERABLE = { code: 'internal', retryable: true };
const both = ['q1', 'q2'];

describeEachEngine('handing over by a webhook', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  // What one test leaves owed is not for the next one's dispatcher.
  beforeEach(() => database.sql("UPDATE task_session_turns SET dispatch = ''"));

  async function staged(env: Readonly<Record<string, string>> = {}) {
    const { stage, scenario } = stagedScenario(database, { REATTACH_MS: '0', PRE_CLAIM_BUDGET_MS: '400', ...env });
    const session = await scenario.webhookSession();
    return { stage, scenario, session, port: scenario.services.port, asked: await scenario.asked(both, session) };
  }

  /** Of the session's turns the private keys and what is still to be sent, also of those that are hidden. */
  async function turnRows({ sessionId }: Pick<Asked, 'sessionId'>) {
    const { rows } = await database.reader.query<Record<string, string>>(
      soon(),
      `SELECT id, metadata, mailbox, dispatch, dispatch_attempts, dispatch_next_at, completed_at
       FROM task_session_turns WHERE task_session_id = $1 ORDER BY started_at`,
      [sessionId],
    );
    return rows.map((row): Record<string, unknown> => ({ ...row, metadata: JSON.parse(row['metadata'] ?? '{}') }));
  }

  const deliveredOf = async (scenario: Scenario, asked: Asked) =>
    (await scenario.services.requests.get(UNSCOPED, asked.pendingId, soon())).delivered;

  describe('(a) to (d), the agent accepts', () => {
    it('HANDOVER-WEBHOOK: it is called once, with the answer in words and as data, under the id of its next turn', async () => {
      const { scenario, session, port, asked } = await staged();
      const won = await scenario.answer(asked, both);
      expect(won).toMatchObject({ claimed: true, delivered: true });
      const [, turn] = await scenario.turns(session);
      const [first] = await scenario.messages(session);
      expect(port.calls).toEqual([{ id: turn?.id, url: WEBHOOK.url, secret: WEBHOOK.secret, body: expect.anything() }]);
      expect(JSON.parse(port.calls[0]?.body ?? '')).toEqual({
        type: 'clarification.answered',
        session_id: session.sessionId,
        task_id: session.taskId,
        turn_id: turn?.id,
        pending_id: asked.pendingId,
        prompt: first?.content,
        response: won.response,
      });
      expect(first).toMatchObject({ turn_id: turn?.id, author_type: 'user', author_id: 'alice', queued: false });
      expect(first?.content).toContain('Left of q1 (left)');
      expect(await scenario.mailbox(session)).toBeUndefined();
      expect(await scenario.stateOf(session)).toBe('running');
      expect(await deliveredOf(scenario, asked)).toBe(true);
      const [asking, carrying] = await turnRows(session);
      expect(asking).toMatchObject({ completed_at: expect.any(String) });
      expect(carrying).toMatchObject({ metadata: { resumed_from_pending_id: asked.pendingId }, dispatch: 'settled' });
      expect(scenario.typesPublished().slice(-6)).toEqual([
        'session.message.updated',
        'session.message.updated',
        'turn.completed',
        'turn.started',
        'session.message.added',
        'clarification.resolved',
      ]);
    });

    it('HANDOVER-WEBHOOK/R2: while it is called the turn is hidden, the intents stand, and a loser is told delivered:false', async () => {
      const { scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      const call = await held.called;
      const rows = await scenario.rows(asked);
      const [, reserved] = await turnRows(session);
      expect(reserved).toMatchObject({
        id: call.id,
        metadata: {
          prompt_dispatch_pending: true,
          prompt_dispatch_attempted: true,
          prompt_dispatch_clarification_turn_id: rows[0]?.turnId,
          prompt_dispatch_clarification_pending_id: asked.pendingId,
          prompt_dispatch_clarification_message_ids: expect.arrayContaining(rows.map((row) => row.id)),
        },
      });
      expect(await scenario.turns(session)).toHaveLength(1);
      expect(await scenario.messages(session)).toEqual([]);
      expect(await scenario.owesHandOver(asked)).toBe(true);
      expect(scenario.typesPublished()).not.toContain('clarification.resolved');
      expect(await scenario.answer(asked, both, 'right')).toMatchObject({ claimed: false, delivered: false });
      held.end(ACCEPTED);
      expect(await answering).toMatchObject({ claimed: true, delivered: true });
      expect(await scenario.answer(asked, both, 'right')).toMatchObject({ claimed: false, delivered: true });
    });

    it('HANDOVER-WEBHOOK: a reservation is no current turn until it is attempted', async () => {
      const { stage, scenario, session, asked } = await staged();
      const held = stage.hold('delivery.attempt', 'begin');
      const answering = scenario.answer(asked, both);
      await held.reached;
      const other = await scenario.asked(['q9'], session);
      expect(await scenario.isActive(other)).toBe(true);
      held.release();
      // By now another question of the turn is open: the agent may be waiting for that one.
      expect(await answering).toMatchObject({ delivered: true });
      expect(scenario.services.port.calls).toEqual([]);
      expect(await scenario.turns(session)).toHaveLength(1);
      expect(await scenario.messages(session)).toMatchObject([{ queued: true }]);
      expect(await scenario.isActive(other)).toBe(true);
    });

    it('HANDOVER-WEBHOOK/WAIT-UNSETTLED: an agent that is back before it is called becomes the waiter instead', async () => {
      const { stage, scenario, session, port, asked } = await staged();
      const held = stage.hold('delivery.attempt', 'begin');
      const answering = scenario.answer(asked, both);
      await held.reached;
      const waiting = await scenario.waiting(asked);
      held.release();
      const won = await answering;
      expect(won).toMatchObject({ delivered: true });
      expect(await waiting.result).toMatchObject({ kind: 'response', response: won.response });
      expect(port.calls).toEqual([]);
      expect(await turnRows(session)).toHaveLength(1);
    });

    it('WAIT-UNSETTLED/WAIT-ACK: one that is back while it is called waits for the outcome, and learns of the turn', async () => {
      const { scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      const call = await held.called;
      const waiting = await scenario.waiting(asked);
      held.end(ACCEPTED);
      const { response } = await answering;
      expect(await waiting.result).toMatchObject({ kind: 'response', response: { ...response, turn_id: call.id } });
      expect(await scenario.mailbox(session)).toBeUndefined();
    });

    it('HANDOVER-WEBHOOK: (f) accepted and not written down is recorded, and the reconciliation writes it without a second call', async () => {
      const { stage, scenario, session, port, asked } = await staged();
      for (let attempt = 0; attempt < 20; attempt += 1) stage.fail('delivery.publish', 'begin', AWAY);
      await expect(scenario.answer(asked, both)).rejects.toMatchObject(RECORDED);
      expect(await scenario.statuses(asked)).toEqual(['answered', 'answered']);
      expect(await scenario.turns(session)).toHaveLength(1);
      await scenario.services.recovery.reconcile();
      expect(await scenario.turns(session)).toHaveLength(2);
      expect(await scenario.owesHandOver(asked)).toBe(false);
      expect(await scenario.mailbox(session)).toBeUndefined();
      expect(port.calls).toHaveLength(1);
      expect(scenario.typesPublished()).toContain('turn.started');
      expect((await turnRows(session))[1]).toMatchObject({
        metadata: { resumed_from_pending_id: asked.pendingId },
        dispatch: 'settled',
      });
    });

    it('R4a: a publication whose COMMIT got no reply is looked for, and is there', async () => {
      const { stage, scenario, session, port, asked } = await staged({ PRE_CLAIM_BUDGET_MS: '5000' });
      stage.fail('delivery.publish', 'committed', AWAY);
      expect(await scenario.answer(asked, both)).toMatchObject({ delivered: true });
      expect(await scenario.turns(session)).toHaveLength(2);
      expect(port.calls).toHaveLength(1);
    });

    it('PROMPT: what the agent writes into the turn before we hear that it accepted comes after the prompt', async () => {
      const { scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      const call = await held.called;
      scenario.services.clock.advance(1_000);
      const { agent, sessionId } = session;
      await scenario.services.messages.admit(agent, sessionId, { content: 'On it.' }, soon());
      const next = await scenario.asked(['q7'], session);
      held.end(ACCEPTED);
      await answering;
      const messages = await scenario.messages(session);
      expect(messages.map(({ turn_id, author_type }) => [turn_id, author_type])).toEqual([
        [call.id, 'user'],
        [call.id, 'agent'],
      ]);
      expect(await scenario.isActive(next)).toBe(true);
    });

    it('OPEN-TURN: an agent that waits in its new turn, before we hear that it accepted, still waits afterwards', async () => {
      const { scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      await held.called;
      const next = await scenario.asked(['q7'], session);
      await scenario.waiting(next);
      expect(await scenario.stateOf(session)).toBe('waiting_for_input');
      held.end(ACCEPTED);
      await answering;
      expect(await scenario.stateOf(session)).toBe('waiting_for_input');
    });

    it('HANDOVER-WEBHOOK: a turn that the agent completes before we hear that it accepted is told of once, completed', async () => {
      const { scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      const call = await held.called;
      scenario.services.clock.advance(1_000);
      await scenario.completeTurn(session, call.id);
      await scenario.services.messages.admit(ALICE, session.sessionId, { content: 'And then?' }, soon());
      held.end(ACCEPTED);
      await answering;
      const about = scenario.published.filter((event) => 'turnId' in event && event.turnId === call.id);
      expect(about.map((event) => event.type)).toEqual(['turn.started', 'turn.completed']);
      // What was admitted meanwhile has its own turn, because this one is over.
      const turns = await scenario.turns(session);
      expect(turns.map((turn) => turn.completed_at === null)).toEqual([false, false, true]);
      expect((await scenario.messages(session)).map(({ turn_id }) => turn_id)).toEqual([call.id, turns[2]?.id]);
    });
  });

  describe('(e), the agent is known not to have been reached', () => {
    it('HANDOVER-REFUSED/RESTORE: the reservation goes, exactly the claimed rows are pending again, and another answer may win', async () => {
      const { scenario, session, port, asked } = await staged();
      port.next(NOT_DELIVERED);
      await expect(scenario.answer(asked, both)).rejects.toMatchObject(ANSWERABLE);
      expect(await scenario.statuses(asked)).toEqual(['pending', 'pending']);
      expect(await scenario.owesHandOver(asked)).toBe(false);
      expect(await turnRows(session)).toHaveLength(1);
      expect(await scenario.isActive(asked)).toBe(true);
      expect(scenario.typesPublished().slice(-1)).toEqual(['clarification.restored']);
      expect(await scenario.answer(asked, both, 'right')).toMatchObject({ claimed: true, delivered: true });
      expect(new Set(port.calls.map((call) => call.id)).size).toBe(2);
      expect(await scenario.turns(session)).toHaveLength(2);
    });

    it.each(['delivery.hand-over', 'delivery.attempt'])(
      'HANDOVER-REFUSED: so it is when %s fails, also when only its reply is lost; nobody is called',
      async (name) => {
        for (const step of ['commit', 'committed'] as const) {
          const { stage, scenario, session, port, asked } = await staged();
          stage.fail(name, step, BOOM);
          await expect(scenario.answer(asked, both)).rejects.toMatchObject(ANSWERABLE);
          expect(await scenario.isActive(asked)).toBe(true);
          expect(await turnRows(session)).toHaveLength(1);
          expect(port.calls).toEqual([]);
        }
      },
    );

    it('HANDOVER-FORBIDDEN: a session that ended meanwhile keeps the answer as history', async () => {
      const { scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      await held.called;
      await scenario.end(session);
      held.end(NOT_DELIVERED);
      await expect(answering).rejects.toMatchObject(RECORDED);
      expect(await scenario.statuses(asked)).toEqual(['answered', 'answered']);
      expect(await scenario.owesHandOver(asked)).toBe(false);
      expect(await turnRows(session)).toHaveLength(1);
    });

    it('HANDOVER-FORBIDDEN: one that ended before the call is not called at all', async () => {
      const { stage, scenario, session, port, asked } = await staged();
      const held = stage.hold('delivery.attempt', 'begin');
      const answering = scenario.answer(asked, both);
      await held.reached;
      await scenario.end(session);
      held.release();
      await expect(answering).rejects.toMatchObject(RECORDED);
      expect(port.calls).toEqual([]);
      expect(await turnRows(session)).toHaveLength(1);
      expect(await scenario.owesHandOver(asked)).toBe(false);
    });

    it('HANDOVER-REFUSED: a removal that fails keeps the session blocked until the reconciliation, which takes the answer back', async () => {
      const { stage, scenario, session, port, asked } = await staged({ DELIVERY_BUDGET_MS: '300' });
      port.next(NOT_DELIVERED);
      for (let attempt = 0; attempt < 20; attempt += 1) stage.fail('delivery.restore', 'begin', AWAY);
      await expect(scenario.answer(asked, both)).rejects.toMatchObject(ANSWERABLE);
      expect(await scenario.answer(asked, both)).toMatchObject({ claimed: false, delivered: false });
      await expect(scenario.openTurn(session)).rejects.toThrow(TemporarilyUnavailableError);
      await scenario.services.recovery.reconcile();
      expect(await scenario.isActive(asked)).toBe(true);
      expect(await turnRows(session)).toHaveLength(1);
      expect(port.calls).toHaveLength(1);
    });

    it('HANDOVER-REFUSED: a reconciliation that began during the call takes the answer back, too', async () => {
      const { stage, scenario, session, port, asked } = await staged();
      const call = port.holdNext();
      const answering = scenario.answer(asked, both);
      await call.called;
      const held = stage.hold('recovery.reservation', 'begin');
      const reconciling = scenario.services.recovery.reconcile();
      await held.reached;
      for (let attempt = 0; attempt < 20; attempt += 1) stage.fail('delivery.restore', 'begin', AWAY);
      call.end(NOT_DELIVERED);
      await expect(answering).rejects.toMatchObject(ANSWERABLE);
      held.release();
      await reconciling;
      expect(await scenario.isActive(asked)).toBe(true);
      expect(await turnRows(session)).toHaveLength(1);
      expect(port.calls).toHaveLength(1);
    });

    it('HANDOVER-UNKNOWN: an agent that has written into the turn was reached, whatever its status said', async () => {
      const { scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      const call = await held.called;
      const next = await scenario.asked(['q7'], session);
      held.end(NOT_DELIVERED);
      await expect(answering).resolves.toMatchObject({ claimed: true, delivered: false });
      expect((await scenario.turns(session)).map(({ id }) => id)).toContain(call.id);
      expect(await scenario.isActive(next)).toBe(true);
    });
  });

  describe('(g), nobody knows', () => {
    it('HANDOVER-UNKNOWN: the answer stays, is in the mailbox, and is sent again, the same bytes under the same id, until accepted', async () => {
      const { scenario, session, port, asked } = await staged();
      const { dispatcher, clock } = scenario.services;
      port.next(UNKNOWN, NOT_DELIVERED);
      expect(await scenario.answer(asked, both)).toMatchObject({ claimed: true, delivered: false });
      expect(await scenario.answer(asked, both)).toMatchObject({ claimed: false, delivered: false });
      expect(await deliveredOf(scenario, asked)).toBe(false);
      expect(await scenario.owesHandOver(asked)).toBe(false);
      const [, turn] = await scenario.turns(session);
      expect(await scenario.mailbox(session)).toMatchObject({ turn: { id: turn?.id } });
      expect(scenario.typesPublished().at(-1)).toBe('clarification.resolved');

      dispatcher.look();
      await dispatcher.beforeApplicationShutdown();
      expect(port.calls).toHaveLength(1);
      clock.advance(5_000);
      dispatcher.look();
      await until(async () => (await turnRows(session))[1]?.['dispatch_attempts'] === 2);
      clock.advance(9_999);
      dispatcher.look();
      await dispatcher.beforeApplicationShutdown();
      expect(port.calls).toHaveLength(2);
      clock.advance(1);
      dispatcher.look();
      await until(() => deliveredOf(scenario, asked));
      expect(port.calls).toHaveLength(3);
      expect(new Set(port.calls.map((call) => JSON.stringify(call))).size).toBe(1);
      expect(await scenario.mailbox(session)).toBeUndefined();
      clock.advance(3_600_000);
      dispatcher.look();
      await dispatcher.beforeApplicationShutdown();
      expect(port.calls).toHaveLength(3);
    });

    it.each(['fetches it from its mailbox', 'waits for it again'])(
      'HANDOVER-UNKNOWN/WAIT-ACK: it is not sent again once the agent %s',
      async (how) => {
        const { scenario, session, port, asked } = await staged();
        port.next(UNKNOWN);
        await scenario.answer(asked, both);
        const turnId = port.calls[0]?.id ?? '';
        if (how === 'waits for it again') {
          expect(await scenario.look(asked)).toMatchObject({ kind: 'response', response: { turn_id: turnId } });
        } else {
          await scenario.services.mailbox.acknowledge(session.agent, session.sessionId, turnId, soon());
        }
        expect(await scenario.mailbox(session)).toBeUndefined();
        expect(await deliveredOf(scenario, asked)).toBe(true);
        scenario.services.clock.advance(3_600_000);
        scenario.services.dispatcher.look();
        await scenario.services.dispatcher.beforeApplicationShutdown();
        expect(port.calls).toHaveLength(1);
      },
    );

    it('HANDOVER-UNKNOWN: it goes on after a restart, to where the webhook is by then', async () => {
      const { scenario, session, port, asked } = await staged();
      port.next(UNKNOWN);
      await scenario.answer(asked, both);
      const next = scenario.restarted();
      next.services.clock.advance(5_000);
      await scenario.moveWebhook(session, { ...WEBHOOK, url: 'https://moved.example/hook' });
      next.services.dispatcher.start();
      await until(() => deliveredOf(next, asked));
      expect(next.services.port.calls).toEqual([{ ...port.calls[0], url: 'https://moved.example/hook' }]);
      await next.services.dispatcher.beforeApplicationShutdown();
    });

    it('HANDOVER-UNKNOWN: a webhook that moves while its old address is being tried is called at the new one at once', async () => {
      const { scenario, session, port, asked } = await staged();
      port.next(UNKNOWN);
      expect(await scenario.answer(asked, both)).toMatchObject({ delivered: false });
      scenario.services.clock.advance(5_000);
      const held = port.holdNext();
      scenario.services.dispatcher.look();
      await held.called;
      const url = 'https://moved.example/hook';
      await scenario.services.sessions.update(
        UNSCOPED,
        session.sessionId,
        { resume: { mode: 'webhook', url } },
        soon(),
      );
      held.end(NOT_DELIVERED);
      await until(() => port.calls.length === 3);
      expect(port.calls[2]).toEqual({ ...port.calls[0], url });
      await until(() => deliveredOf(scenario, asked));
    });

    it('HANDOVER-UNKNOWN: a webhook that is back before its absence was written down is called', async () => {
      const { stage, scenario, session, port, asked } = await staged();
      port.next(UNKNOWN);
      await scenario.answer(asked, both);
      await scenario.moveWebhook(session, { mode: 'pull' });
      const held = stage.hold('dispatch.abandon', 'begin');
      scenario.services.clock.advance(5_000);
      scenario.services.dispatcher.look();
      await held.reached;
      await scenario.moveWebhook(session, WEBHOOK);
      held.release();
      await until(() => port.calls.length === 2);
      expect(port.calls[1]).toEqual(port.calls[0]);
      await until(() => deliveredOf(scenario, asked));
    });

    it('HANDOVER-UNKNOWN: after a day, or when the session has ended, it is left in the mailbox', async () => {
      for (const end of ['day', 'session'] as const) {
        const { scenario, session, port, asked } = await staged();
        port.next(UNKNOWN);
        await scenario.answer(asked, both);
        if (end === 'session') await scenario.end(session);
        scenario.services.clock.advance(end === 'day' ? 86_400_000 : 5_000);
        scenario.services.dispatcher.look();
        await until(async () => (await turnRows(session))[1]?.['dispatch'] === 'given_up');
        expect(port.calls).toHaveLength(1);
        expect(await scenario.mailbox(session)).toBeDefined();
      }
    });

    it('HANDOVER-UNKNOWN: what could not be written down is seen to by the reconciliation', async () => {
      const { stage, scenario, session, port, asked } = await staged();
      port.next(UNKNOWN);
      for (let attempt = 0; attempt < 20; attempt += 1) stage.fail('delivery.publish', 'begin', AWAY);
      expect(await scenario.answer(asked, both)).toMatchObject({ claimed: true, delivered: false });
      expect(await scenario.turns(session)).toHaveLength(1);
      await scenario.services.recovery.reconcile();
      expect(await scenario.mailbox(session)).toBeDefined();
      expect(await deliveredOf(scenario, asked)).toBe(false);
      scenario.services.dispatcher.look();
      await until(() => deliveredOf(scenario, asked));
      expect(new Set(port.calls.map((call) => JSON.stringify(call))).size).toBe(1);
    });

    it('SHUTDOWN: a server that stops does not wait for the agent', async () => {
      const { scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      await held.called;
      scenario.services.dispatches.onModuleDestroy();
      expect(await answering).toMatchObject({ claimed: true, delivered: false });
      expect(await scenario.mailbox(session)).toBeDefined();
    });
  });

  describe('while a turn is reserved', () => {
    it('RESERVATION-BARRIER: POST turns waits for the outcome, then opens its own', async () => {
      const { stage, scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      const call = await held.called;
      const opening = scenario.openTurn(session);
      await until(() => stage.begun.includes('turn.open'));
      held.end(ACCEPTED);
      await answering;
      const opened = await opening;
      expect((await scenario.turns(session)).slice(1).map(({ id }) => id)).toEqual([call.id, opened.id]);
    });

    it('RESERVATION-BARRIER: it does not wait longer than a hand-over may take', async () => {
      const { scenario, session, port, asked } = await staged({ DELIVERY_BUDGET_MS: '300' });
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      await held.called;
      await expect(scenario.openTurn(session)).rejects.toThrow(TemporarilyUnavailableError);
      held.end(ACCEPTED);
      await answering;
      expect(await scenario.turns(session)).toHaveLength(2);
    });

    it('QUEUE/RESERVATION-BARRIER: a message is queued, hangs on a turn that is shown, and a refused call can still be taken back', async () => {
      const { scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      await held.called;
      const [asking] = await scenario.turns(session);
      const { admission, message } = await scenario.services.messages.admit(
        ALICE,
        session.sessionId,
        { content: 'Hello?' },
        soon(),
      );
      expect([admission, message.turn_id]).toEqual(['queued', asking?.id]);
      held.end(NOT_DELIVERED);
      await expect(answering).rejects.toMatchObject(ANSWERABLE);
      expect(await scenario.isActive(asked)).toBe(true);
      expect(await scenario.messages(session)).toMatchObject([{ queued: true }]);
    });

    it('QUEUE: the answer to what the agent asks before we hear that it accepted resumes it once we have', async () => {
      const { scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      const answering = scenario.answer(asked, both);
      await held.called;
      const next = await scenario.asked(['q9'], session);
      expect(await scenario.answer(next, ['q9'])).toMatchObject({ claimed: true, delivered: true });
      expect(await scenario.messages(session)).toMatchObject([{ queued: true }]);
      held.end(ACCEPTED);
      expect(await answering).toMatchObject({ delivered: true });
      const messages = await scenario.messages(session);
      expect(messages.map(({ queued }) => queued)).toEqual([false, false]);
      const turns = await scenario.turns(session);
      expect(turns.map((turn) => turn.completed_at !== null)).toEqual([true, true, false]);
      scenario.services.dispatcher.look();
      await until(() => port.calls.length === 2);
      expect(port.calls[1]?.id).toBe(turns[2]?.id);
    });

    it('SUPERSEDE: what the agent asks elsewhere in the old turn can no longer be answered once it is called', async () => {
      const { stage, scenario, session, port, asked } = await staged();
      const held = port.holdNext();
      stage.do('delivery.attempt', ['committed', () => undefined]);
      const answering = scenario.answer(asked, both);
      await held.called;
      const late = await scenario.asked(['q8'], session);
      expect((await scenario.rows(late))[0]?.turnId).toBe(port.calls[0]?.id);
      held.end(ACCEPTED);
      await answering;
      expect(await scenario.isActive(late)).toBe(true);
      await expect(scenario.cancel(asked)).rejects.toThrow(NotActiveError);
    });
  });

  describe('prompts', () => {
    it('TURN-PROMPTED: a message, and a turn that a person opens, are in the mailbox until the webhook has accepted them', async () => {
      const { scenario, port } = await staged();
      const { dispatcher, clock } = scenario.services;
      const session = await scenario.webhookSession();
      port.next(UNKNOWN);
      const { message } = await scenario.services.messages.admit(ALICE, session.sessionId, { content: 'Go.' }, soon());
      expect(await scenario.mailbox(session)).toMatchObject({ prompt: 'Go.' });
      dispatcher.look();
      await until(async () => (await turnRows(session))[0]?.['dispatch_attempts'] === 1);
      clock.advance(5_000);
      dispatcher.look();
      await until(async () => (await scenario.mailbox(session)) === undefined);
      const opened = await scenario.openTurn(session, 'And on.');
      dispatcher.look();
      await until(async () => (await scenario.mailbox(session)) === undefined);
      expect(port.calls.map(({ id, body }) => [id, JSON.parse(body) as unknown])).toEqual(
        [
          [message.turn_id, 'Go.'],
          [message.turn_id, 'Go.'],
          [opened.id, 'And on.'],
        ].map(([id, prompt]) => [
          id,
          { type: 'turn.prompted', session_id: session.sessionId, task_id: session.taskId, turn_id: id, prompt },
        ]),
      );
      await dispatcher.beforeApplicationShutdown();
    });

    it('TURN-PROMPTED: a turn that the agent opens itself, or without a prompt, is sent to nobody', async () => {
      const { scenario, port } = await staged();
      const session = await scenario.webhookSession();
      await scenario.services.turns.open(session.agent, session.sessionId, { prompt: 'Mine.' }, soon());
      await scenario.openTurn(session);
      scenario.services.dispatcher.look();
      await scenario.services.dispatcher.beforeApplicationShutdown();
      expect(port.calls).toEqual([]);
      expect((await turnRows(session)).map((turn) => turn['dispatch'])).toEqual(['', '']);
    });

    it('TURN-PROMPTED/QUEUE: an answer that waited behind a sibling is sent as the answer it is, in its turn', async () => {
      const { scenario, session, port, asked } = await staged();
      const sibling = await scenario.asked(['q9'], session);
      const won = await scenario.answer(asked, both);
      expect(won).toMatchObject({ delivered: true });
      expect(port.calls).toEqual([]);
      await scenario.cancel(sibling);
      scenario.services.dispatcher.look();
      await until(async () => (await turnRows(session))[1]?.['dispatch'] === 'settled');
      const [, turn] = await scenario.turns(session);
      expect(port.calls.map(({ id, body }) => [id, JSON.parse(body) as unknown])).toEqual([
        [
          turn?.id,
          {
            type: 'clarification.answered',
            session_id: session.sessionId,
            task_id: session.taskId,
            turn_id: turn?.id,
            pending_id: asked.pendingId,
            prompt: expect.stringContaining('Left of q1 (left)'),
            response: won.response,
          },
        ],
      ]);
      expect(await deliveredOf(scenario, asked)).toBe(true);
    });

    it('TURN-PROMPTED: two prompts of one session are sent in order, one at a time', async () => {
      const { scenario, port } = await staged();
      const { dispatcher } = scenario.services;
      const session = await scenario.webhookSession();
      const first = await scenario.openTurn(session, 'One.');
      const second = await scenario.openTurn(session, 'Two.');
      const held = port.holdNext();
      dispatcher.look();
      expect((await held.called).id).toBe(first.id);
      dispatcher.look();
      await until(async () => (await scenario.mailbox(session))?.turn.id === first.id);
      expect(port.calls).toHaveLength(1);
      held.end(ACCEPTED);
      await until(async () => (await scenario.mailbox(session)) === undefined);
      expect(port.calls.map(({ id }) => id)).toEqual([first.id, second.id]);
      await dispatcher.beforeApplicationShutdown();
    });
  });

  describe('an agent that waited and whose connection was lost', () => {
    it('HANDOVER-LOST/HANDOVER-UNKNOWN: is called; when it cannot be, the answer is not taken back but sent until it is', async () => {
      for (const result of [ACCEPTED, NOT_DELIVERED, UNKNOWN]) {
        const { scenario, session, port, asked } = await staged();
        port.next(result);
        let lose: (written: boolean) => void = () => undefined;
        const waiting = await scenario.waiting(asked, { onReply: (listener) => (lose = listener) });
        await scenario.answer(asked, both);
        await waiting.result;
        lose(false);
        await until(async () => (await scenario.turns(session)).length === 2);
        expect(await scenario.statuses(asked)).toEqual(['answered', 'answered']);
        expect(await deliveredOf(scenario, asked)).toBe(result.kind === 'accepted');
        expect((await scenario.mailbox(session)) !== undefined).toBe(result.kind !== 'accepted');
      }
    });
  });

  it('SERIAL: an error inside the step that publishes changes nothing of what the step before it left', async () => {
    const { stage, scenario, session, asked } = await staged();
    stage.do('delivery.publish', [/INSERT INTO task_session_messages/, failWith(BOOM)]);
    await expect(scenario.answer(asked, both)).rejects.toMatchObject(RECORDED);
    expect(await scenario.messages(session)).toEqual([]);
    expect(await scenario.owesHandOver(asked)).toBe(true);
  });
});
