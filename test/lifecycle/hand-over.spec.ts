import { beforeAll, describe, expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { NotFoundError, TemporarilyUnavailableError } from '../../src/common/domain-error.js';
import type { OnReply } from '../../src/common/on-reply.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { CommitOutcomeUnknownError } from '../../src/persistence/unit-of-work.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { ALICE, Scenario, soon, type Asked, stagedScenario } from '../support/scenario.js';
import { failWith, Stage } from '../support/stage.js';
import { until } from '../support/until.js';

const HAND_OVER = 'delivery.hand-over';
const BOOM = new Error('boom');
const UNKNOWN = new CommitOutcomeUnknownError({ cause: new Error('the line went dead') });
const RECORDED = { code: 'internal', retryable: false };
const ANSWERABLE = { code: 'internal', retryable: true };

/** A reply that is told by hand whether it got out. */
function handReply(): { readonly onReply: OnReply; tell(written: boolean): void } {
  const listeners: ((written: boolean) => void)[] = [];
  return {
    onReply: (listener) => void listeners.push(listener),
    tell: (written) => {
      for (const listener of listeners.splice(0)) listener(written);
    },
  };
}

describeEachEngine('handing over', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  const staged = () => stagedScenario(database);
  const both = ['q1', 'q2'];

  describe('path 1, an agent waits', () => {
    it('HANDOVER-WAITER: it confirms durably, on exactly the claimed rows, before anybody hears of it', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked(both);
      const waiting = await scenario.waiting(asked);
      let isAnswered = false;
      void waiting.result.then(() => (isAnswered = true));
      const held = stage.hold(HAND_OVER, 'commit');
      const answering = scenario.answer(asked, both);
      await held.reached;
      expect(await scenario.owesHandOver(asked)).toBe(true);
      expect(isAnswered).toBe(false);
      expect(scenario.typesPublished()).not.toContain('clarification.resolved');
      held.release();
      const won = await answering;
      expect(await waiting.result).toEqual({ kind: 'response', response: won.response, rows: expect.anything() });
      expect(won).toMatchObject({ claimed: true, delivered: true });
      expect(await scenario.owesHandOver(asked)).toBe(false);
      expect(await scenario.turns(asked)).toHaveLength(1);
      expect(scenario.typesPublished().at(-1)).toBe('clarification.resolved');
    });

    it('OPEN-TURN: a response taken over makes the session running again, in the same turn', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      await scenario.waiting(asked);
      expect(await scenario.stateOf(asked)).toBe('waiting_for_input');
      await scenario.answer(asked);
      expect(await scenario.stateOf(asked)).toBe('running');
      expect(await scenario.turns(asked)).toMatchObject([{ completed_at: null }]);
    });

    it('HANDOVER-WAITER/RESTORE: a confirmation that fails gives the bundle back and leaves the waiter where it is', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked(both);
      const waiting = await scenario.waiting(asked);
      stage.fail(HAND_OVER, 'commit', BOOM);
      await expect(scenario.answer(asked, both)).rejects.toMatchObject(ANSWERABLE);
      expect(scenario.services.waiters.hasAgent(asked.pendingId)).toBe(true);
      const rows = await scenario.rows(asked);
      expect(rows.map(({ metadata }) => metadata['status'])).toEqual(['pending', 'pending']);
      expect(rows.some(({ metadata }) => 'response' in metadata || 'response_delivery_pending' in metadata)).toBe(
        false,
      );
      expect(scenario.typesPublished()).toContain('clarification.restored');
      expect(scenario.typesPublished()).not.toContain('clarification.resolved');
      const won = await scenario.answer(asked, both, 'right');
      expect(await waiting.result).toMatchObject({ response: won.response });
    });

    it('HANDOVER-WAITER: a confirmation whose COMMIT got no reply is settled by the rows', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked);
      stage.fail(HAND_OVER, 'committed', UNKNOWN);
      const won = await scenario.answer(asked);
      expect(won).toMatchObject({ claimed: true, delivered: true });
      expect(await waiting.result).toMatchObject({ response: won.response });
      expect(await scenario.turns(asked)).toHaveLength(1);
    });

    it('HANDOVER-WAITER: a confirmation runs to its end although the responder has gone', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked);
      const gone = new AbortController();
      stage.do(HAND_OVER, ['begin', () => gone.abort()]);
      const answers = [{ question_id: 'q1', custom_text: 'said' }];
      const deadline = Deadline.after(5_000, { callerGone: gone.signal });
      await scenario.services.resolver.resolveBundle(
        ALICE,
        asked.pendingId,
        { answers },
        { surface: 'rest', deadline },
      );
      expect(await waiting.result).toMatchObject({ kind: 'response' });
    });

    it('WAIT-REASON: the live agent reads the real reason, which also stays as an ordinary message of the turn', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked);
      const [turn] = await scenario.turns(asked);
      await scenario.reject(asked, 'out of scope');
      expect(await waiting.result).toMatchObject({ response: { rejected: true, reject_reason: 'out of scope' } });
      expect(await scenario.messages(asked)).toMatchObject([
        { content: 'out of scope', turn_id: turn?.id, author_type: 'user', author_id: 'alice', queued: false },
      ]);
    });

    it('WAIT-REASON: also when the agent looks at the rows between the confirmation and being handed the response', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked);
      const held = stage.hold(HAND_OVER, 'committed');
      const rejecting = scenario.reject(asked, 'because');
      await held.reached;
      scenario.services.waiters.wakeAll();
      await new Promise((resolve) => setTimeout(resolve, 50));
      held.release();
      await rejecting;
      expect(await waiting.result).toMatchObject({ response: { reject_reason: 'because' } });
    });

    it('HANDOVER-WAITER: everybody who waits gets the same response, observers too', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const waits = [];
      for (const as of [asked.agent, asked.agent, UNSCOPED, ALICE]) waits.push(await scenario.waiting(asked, { as }));
      const won = await scenario.reject(asked, 'no');
      for (const { result } of waits) expect(await result).toMatchObject({ response: won.response });
    });

    it('HANDOVER-PULL: an agent that leaves before the confirmation is decided is resumed instead', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked);
      const held = stage.hold(HAND_OVER, 'begin');
      const answering = scenario.answer(asked);
      await held.reached;
      waiting.leave();
      expect(await waiting.result).toEqual({ kind: 'pending' });
      held.release();
      expect(await answering).toMatchObject({ claimed: true, delivered: true });
      expect(await scenario.turns(asked)).toHaveLength(2);
      expect((await scenario.mailbox(asked))?.prompt).toContain('Left of q1 (left)');
    });

    it('HANDOVER-WAITER: an agent that comes before the next turn is decided takes the response over', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const held = stage.hold(HAND_OVER, 'begin');
      const answering = scenario.answer(asked);
      await held.reached;
      const waiting = await scenario.waiting(asked);
      held.release();
      const won = await answering;
      expect(await waiting.result).toMatchObject({ response: won.response });
      expect(await scenario.turns(asked)).toHaveLength(1);
    });

    it('HANDOVER-WAITER: an agent whose time is up stays for a hand-over that counts on it', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked, { timeoutMs: 300 });
      const held = stage.hold(HAND_OVER, 'commit');
      const answering = scenario.answer(asked);
      await held.reached;
      await new Promise((resolve) => setTimeout(resolve, 350));
      expect(scenario.services.waiters.hasAgent(asked.pendingId)).toBe(true);
      held.release();
      await answering;
      expect(await waiting.result).toMatchObject({ kind: 'response' });
    });

    it('HANDOVER-WAITER: also for a second hand-over that began before the first, given back, had ended', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked, { timeoutMs: 300 });
      stage.fail(HAND_OVER, 'commit', BOOM);
      const restored = stage.hold('delivery.restore', 'committed');
      const confirming = stage.hold(HAND_OVER, 'commit');
      const first = scenario.answer(asked);
      await restored.reached;
      const second = scenario.answer(asked, ['q1'], 'right');
      await confirming.reached;
      restored.release();
      await expect(first).rejects.toMatchObject(ANSWERABLE);
      await new Promise((resolve) => setTimeout(resolve, 350));
      confirming.release();
      const won = await second;
      expect(await waiting.result).toMatchObject({ response: won.response });
      expect(await scenario.turns(asked)).toHaveLength(1);
    });
  });

  describe('path 1, and the agent is lost', () => {
    const lostAfterAnswer = async (scenario: Scenario, asked: Asked) => {
      const reply = handReply();
      const waiting = await scenario.waiting(asked, { onReply: reply.onReply });
      await scenario.answer(asked);
      expect(await waiting.result).toMatchObject({ kind: 'response' });
      return reply;
    };

    it('HANDOVER-LOST: when its connection closed before the response was written out, the answer opens a new turn', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const reply = await lostAfterAnswer(scenario, asked);
      expect(await scenario.turns(asked)).toHaveLength(1);
      const before = (await scenario.rows(asked)).map((row) => row.updatedAt);
      scenario.services.clock.advance(1_000);
      reply.tell(false);
      await until(async () => (await scenario.turns(asked)).length === 2);
      expect((await scenario.mailbox(asked))?.prompt).toContain('Left of q1 (left)');
      expect(await scenario.statuses(asked)).toEqual(['answered']);
      expect(await scenario.owesHandOver(asked)).toBe(false);
      expect((await scenario.rows(asked)).map((row) => row.updatedAt)).toEqual(before);
      expect(scenario.typesPublished().filter((type) => type === 'clarification.resolved')).toHaveLength(1);
    });

    it('HANDOVER-LOST: a response that was written out opens none', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const reply = await lostAfterAnswer(scenario, asked);
      stage.begun.length = 0;
      reply.tell(true);
      await scenario.services.delivery.drain();
      expect(stage.begun).toEqual([]);
    });

    it('HANDOVER-LOST: one of several agents that got it is enough, in either order', async () => {
      for (const order of [
        [true, false],
        [false, true],
      ]) {
        const { scenario, stage } = staged();
        const asked = await scenario.asked();
        const replies = [handReply(), handReply()];
        for (const { onReply } of replies) await scenario.waiting(asked, { onReply });
        await scenario.answer(asked);
        stage.begun.length = 0;
        for (const [index, reply] of replies.entries()) reply.tell(order[index] === true);
        await scenario.services.delivery.drain();
        expect(stage.begun).toEqual([]);
      }
    });

    it('HANDOVER-LOST: when all of several are lost there is one new turn', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const replies = [handReply(), handReply()];
      for (const { onReply } of replies) await scenario.waiting(asked, { onReply });
      await scenario.answer(asked);
      for (const reply of replies) reply.tell(false);
      await until(async () => (await scenario.turns(asked)).length > 1);
      expect(await scenario.turns(asked)).toHaveLength(2);
    });

    it('HANDOVER-LOST: an agent that came back and has the response from the rows is not resumed as well', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const reply = await lostAfterAnswer(scenario, asked);
      expect(await scenario.look(asked)).toMatchObject({ kind: 'response' });
      stage.begun.length = 0;
      reply.tell(false);
      await scenario.services.delivery.drain();
      expect(stage.begun).toEqual([]);
      expect(await scenario.turns(asked)).toHaveLength(1);
    });

    it('HANDOVER-LOST/WAIT-ACK: an agent that comes back while it is being resumed meets the answer once', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const reply = await lostAfterAnswer(scenario, asked);
      const held = stage.hold('delivery.hand-over-again', 'commit');
      reply.tell(false);
      await held.reached;
      const again = scenario.look(asked);
      held.release();
      const result = await again;
      const turns = await scenario.turns(asked);
      expect(turns).toHaveLength(2);
      expect(result).toMatchObject({ kind: 'response', response: { turn_id: turns[1]?.id } });
      expect(await scenario.mailbox(asked)).toBeUndefined();
    });

    it('HANDOVER-LOST: an agent that waits again before that is decided takes the response over instead', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const reply = await lostAfterAnswer(scenario, asked);
      const held = stage.hold('delivery.hand-over-again', 'begin');
      reply.tell(false);
      await held.reached;
      const again = await scenario.waiting(asked);
      held.release();
      expect(await again.result).toMatchObject({ kind: 'response' });
      await scenario.services.delivery.drain();
      expect(await scenario.turns(asked)).toHaveLength(1);
    });

    it('HANDOVER-LOST: with its turn no longer current the answer stays as history', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const reply = await lostAfterAnswer(scenario, asked);
      await scenario.openTurn(asked, 'something else');
      const before = await scenario.snapshot(asked);
      reply.tell(false);
      await scenario.services.delivery.drain();
      expect(await scenario.snapshot(asked)).toEqual(before);
    });

    it('HANDOVER-LOST: an agent that vanished while the confirmation was committing is resumed before the responder hears', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked);
      const held = stage.hold(HAND_OVER, 'commit');
      const answering = scenario.answer(asked);
      await held.reached;
      waiting.leave();
      await waiting.result;
      held.release();
      expect(await answering).toMatchObject({ delivered: true });
      expect(await scenario.turns(asked)).toHaveLength(2);
    });

    it('HANDOVER-LOST: if that fails too the answer is recorded, and a repeated wait returns it', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked);
      const held = stage.hold(HAND_OVER, 'commit');
      stage.fail('delivery.hand-over-again', 'commit', BOOM);
      const answering = scenario.answer(asked);
      await held.reached;
      waiting.leave();
      await waiting.result;
      held.release();
      await expect(answering).rejects.toMatchObject(RECORDED);
      expect(await scenario.look(asked)).toMatchObject({ kind: 'response' });
    });

    it('HANDOVER-LOST: a rejection that was lost resumes nobody', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const reply = handReply();
      await scenario.waiting(asked, { onReply: reply.onReply });
      await scenario.reject(asked, 'no');
      stage.begun.length = 0;
      reply.tell(false);
      await scenario.services.delivery.drain();
      expect(stage.begun).toEqual([]);
      expect(await scenario.look(asked)).toMatchObject({ response: { rejected: true, reject_reason: '' } });
    });
  });

  describe('path 2, a rejection nobody waits for', () => {
    it('HANDOVER-REJECTION: settles it without resuming the agent and keeps the reason as a message', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked(both);
      const won = await scenario.reject(asked, 'not needed');
      expect(won).toMatchObject({ claimed: true, delivered: true, response: { reject_reason: 'not needed' } });
      expect(await scenario.owesHandOver(asked)).toBe(false);
      expect(await scenario.turns(asked)).toHaveLength(1);
      expect(await scenario.mailbox(asked)).toBeUndefined();
      expect(await scenario.messages(asked)).toMatchObject([{ content: 'not needed' }]);
      expect(scenario.typesPublished().at(-1)).toBe('clarification.resolved');
    });

    it('HANDOVER-REJECTION: a rejection without a reason leaves no message', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      await scenario.reject(asked);
      expect(await scenario.messages(asked)).toEqual([]);
    });

    it('HANDOVER-REJECTION: when settling fails the bundle is answerable again and the reason is not kept', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      stage.fail(HAND_OVER, 'commit', BOOM);
      await expect(scenario.reject(asked, 'no')).rejects.toMatchObject(ANSWERABLE);
      expect(await scenario.isActive(asked)).toBe(true);
      expect(await scenario.messages(asked)).toEqual([]);
    });
  });

  describe('path 3, an answer nobody waits for', () => {
    it('HANDOVER-PULL: opens the next turn with the answer as its prompt in the mailbox, in one transaction', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked(both);
      stage.begun.length = 0;
      const held = stage.hold(HAND_OVER, 'commit');
      const answering = scenario.answer(asked, both);
      await held.reached;
      expect(await scenario.turns(asked)).toHaveLength(1);
      expect(await scenario.owesHandOver(asked)).toBe(true);
      held.release();
      expect(await answering).toMatchObject({ claimed: true, delivered: true });
      expect(stage.begun).toEqual(['bundle.claim', HAND_OVER]);
      const [first, second] = await scenario.turns(asked);
      expect(first?.completed_at).not.toBeNull();
      const entry = await scenario.mailbox(asked);
      expect(entry?.turn).toEqual(second);
      expect(await scenario.messages(asked)).toMatchObject([
        { turn_id: second?.id, author_type: 'user', author_id: 'alice', content: entry?.prompt, queued: false },
      ]);
      expect(await scenario.stateOf(asked)).toBe('running');
      const types = scenario.typesPublished();
      expect(types.indexOf('clarification.resolved')).toBeGreaterThan(types.lastIndexOf('turn.started'));
    });

    it('PROMPT: names every question with the chosen labels and ids and the text', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked(['a', 'b', 'c']);
      await scenario.respond(asked, {
        answers: [
          { question_id: 'a', selected_options: ['right', 'left'], custom_text: 'and more' },
          { question_id: 'b', custom_text: 'only words' },
          { question_id: 'c' },
        ],
      });
      expect((await scenario.mailbox(asked))?.prompt).toBe(
        [
          'The questions you asked have been answered.',
          'Question a: Title of a\nWhich of a?\nSelected options:\n- Left of a (left)\n- Right of a (right)\nText: and more',
          'Question b: Title of b\nWhich of b?\nText: only words',
          'Question c: Title of c\nWhich of c?\nAnswer: (no answer)',
        ].join('\n\n'),
      );
    });

    it('RESTORE/HANDOVER-PULL: a resumption that fails gives the bundle back and leaves no turn', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked(both);
      stage.fail(HAND_OVER, 'commit', BOOM);
      await expect(scenario.answer(asked, both)).rejects.toMatchObject(ANSWERABLE);
      expect(await scenario.statuses(asked)).toEqual(['pending', 'pending']);
      expect(await scenario.turns(asked)).toHaveLength(1);
      expect(await scenario.answer(asked, both)).toMatchObject({ claimed: true });
      expect(await scenario.turns(asked)).toHaveLength(2);
    });

    it('HANDOVER-PULL: a resumption whose COMMIT got no reply is not done twice and not undone', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      stage.fail(HAND_OVER, 'committed', UNKNOWN);
      expect(await scenario.answer(asked)).toMatchObject({ claimed: true, delivered: true });
      expect(await scenario.turns(asked)).toHaveLength(2);
      expect(await scenario.statuses(asked)).toEqual(['answered']);
    });

    it.each([
      ['settled', {}],
      ['owed by somebody else', { response_delivery_pending: true }],
    ])('RESTORE: touches no sibling row that was terminal before the claim (%s)', async (_, intent) => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked(['a', 'b', 'c']);
      const response = { question_id: 'a', selected_options: ['right'], custom_text: '' };
      await scenario.plant(asked, 'a', { status: 'answered', response, ...intent });
      await scenario.plant(asked, 'c', { status: 'cancelled' });
      const before = await scenario.snapshotOf(asked);
      scenario.services.clock.advance(1_000);
      stage.fail(HAND_OVER, 'commit', BOOM);
      await expect(scenario.answer(asked, ['a', 'b', 'c'])).rejects.toMatchObject(ANSWERABLE);
      const after = await scenario.snapshotOf(asked);
      expect([after[0], after[2]]).toEqual([before[0], before[2]]);
      expect(await scenario.statuses(asked)).toEqual(['answered', 'pending', 'cancelled']);
    });

    it('RESTORE: a restore that fails leaves the claim owed, tells the loser so, and the reconciliation makes it good', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      stage.fail(HAND_OVER, 'commit', BOOM);
      stage.fail('delivery.restore', 'commit', BOOM);
      await expect(scenario.answer(asked)).rejects.toMatchObject(ANSWERABLE);
      expect(await scenario.owesHandOver(asked)).toBe(true);
      expect(await scenario.answer(asked, ['q1'], 'right')).toMatchObject({ claimed: false, delivered: false });
      await scenario.services.recovery.reconcile();
      expect(await scenario.isActive(asked)).toBe(true);
      expect(await scenario.answer(asked, ['q1'], 'right')).toMatchObject({ claimed: true, delivered: true });
    });

    it.each([
      ['a newer turn', (scenario: Scenario, asked: Asked) => scenario.openTurn(asked, 'go on')],
      ['a final state', (scenario: Scenario, asked: Asked) => scenario.end(asked)],
    ])('HANDOVER-FORBIDDEN: %s between claim and hand-over keeps the answer as history and says so', async (_, act) => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const held = stage.hold(HAND_OVER, 'begin');
      const answering = scenario.answer(asked);
      await held.reached;
      await act(scenario, asked);
      const turns = await scenario.turns(asked);
      scenario.published.length = 0;
      held.release();
      await expect(answering).rejects.toMatchObject(RECORDED);
      expect(await scenario.statuses(asked)).toEqual(['answered']);
      expect(await scenario.owesHandOver(asked)).toBe(false);
      expect(await scenario.turns(asked)).toEqual(turns);
      expect(scenario.typesPublished()).toEqual(['session.message.updated']);
      expect(await scenario.reject(asked)).toMatchObject({ claimed: false, status: 'answered' });
    });

    it.each([
      ['a newer turn', (scenario: Scenario, asked: Asked) => scenario.openTurn(asked, 'go on')],
      ['a final state', (scenario: Scenario, asked: Asked) => scenario.end(asked)],
    ])('HANDOVER-FORBIDDEN: %s between a failed hand-over and its restore does so too', async (_, act) => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      stage.fail(HAND_OVER, 'commit', BOOM);
      const held = stage.hold('delivery.restore', 'begin');
      const answering = scenario.answer(asked);
      await held.reached;
      await act(scenario, asked);
      held.release();
      await expect(answering).rejects.toMatchObject(RECORDED);
      expect(await scenario.statuses(asked)).toEqual(['answered']);
      expect(await scenario.owesHandOver(asked)).toBe(false);
    });

    it.each([[HAND_OVER], ['delivery.restore']])(
      'HANDOVER-FORBIDDEN: a task deleted before %s leaves nothing to hand over: not found',
      async (transaction) => {
        const { stage, scenario } = staged();
        const asked = await scenario.asked();
        if (transaction !== HAND_OVER) stage.fail(HAND_OVER, 'commit', BOOM);
        const held = stage.hold(transaction, 'begin');
        const answering = scenario.answer(asked);
        await held.reached;
        await scenario.services.tasks.delete(ALICE, asked.taskId, soon());
        held.release();
        await expect(answering).rejects.toThrow(NotFoundError);
      },
    );

    it('R2/R10: a loser is told delivered:false while the hand-over is not settled, and true afterwards', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const held = stage.hold(HAND_OVER, 'begin');
      const answering = scenario.answer(asked);
      await held.reached;
      expect(await scenario.reject(asked)).toMatchObject({ claimed: false, delivered: false, status: 'answered' });
      held.release();
      await answering;
      expect(await scenario.reject(asked)).toMatchObject({ claimed: false, delivered: true, status: 'answered' });
    });

    it('BUDGET: a hand-over has a budget of its own, after which the bundle is answerable again', async () => {
      const stage = new Stage();
      const env = { DELIVERY_BUDGET_MS: '200', REATTACH_MS: '0' };
      const scenario = new Scenario(database, { wrap: stage.wrap, env });
      const asked = await scenario.asked();
      stage.do(HAND_OVER, ['commit', () => new Promise((resolve) => setTimeout(resolve, 250))]);
      await expect(scenario.answer(asked)).rejects.toMatchObject({
        ...ANSWERABLE,
        cause: expect.any(TemporarilyUnavailableError),
      });
      expect(await scenario.isActive(asked)).toBe(true);
    });
  });

  describe('beside another question of the same turn', () => {
    it('HANDOVER-PULL/QUEUE: the prompt is queued while the sibling is active, and released when it is answered', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const first = await scenario.asked(['a'], session);
      const second = await scenario.asked(['b'], session);
      expect(await scenario.answer(first, ['a'])).toMatchObject({ claimed: true, delivered: true });
      expect(await scenario.owesHandOver(first)).toBe(false);
      expect(await scenario.isActive(second)).toBe(true);
      expect(await scenario.turns(session)).toHaveLength(1);
      expect(await scenario.mailbox(session)).toBeUndefined();
      expect(await scenario.messages(session)).toMatchObject([{ queued: true }]);

      await scenario.answer(second, ['b']);
      const [, next] = await scenario.turns(session);
      expect((await scenario.mailbox(session))?.prompt).toContain('Question b');
      await scenario.services.mailbox.acknowledge(session.agent, session.sessionId, next?.id ?? '', soon());
      await scenario.completeTurn(session, next?.id ?? '');
      expect((await scenario.mailbox(session))?.prompt).toContain('Question a');
      expect(await scenario.messages(session)).toMatchObject([{ queued: false }, { queued: false }]);
    });

    it.each([
      ['rejected with nobody waiting', (scenario: Scenario, asked: Asked) => scenario.reject(asked)],
      ['cancelled', (scenario: Scenario, asked: Asked) => scenario.cancel(asked)],
      [
        'answered to an agent that waits',
        async (scenario: Scenario, asked: Asked) => {
          const waiting = await scenario.waiting(asked);
          await scenario.answer(asked, ['b']);
          expect(await waiting.result).toMatchObject({ kind: 'response' });
        },
      ],
    ])(
      'HANDOVER-PULL/QUEUE: it is released at once when the sibling is %s, though its turn never completed',
      async (_, close) => {
        const { scenario } = staged();
        const session = await scenario.session();
        const first = await scenario.asked(['a'], session);
        const second = await scenario.asked(['b'], session);
        await scenario.answer(first, ['a']);
        await close(scenario, second);
        expect(await scenario.turns(session)).toMatchObject([
          { completed_at: expect.any(String) },
          { completed_at: null },
        ]);
        expect((await scenario.mailbox(session))?.prompt).toContain('Question a');
        expect(await scenario.look(first)).toMatchObject({
          response: { turn_id: (await scenario.turns(session))[1]?.id },
        });
        expect(await scenario.mailbox(session)).toBeUndefined();
      },
    );

    it('ISOLATION: two answers at once are both delivered, one turn each', async () => {
      const { stage, scenario } = staged();
      const session = await scenario.session();
      const first = await scenario.asked(['a'], session);
      const second = await scenario.asked(['b'], session);
      // Both claims have committed before either is handed over.
      const held = [stage.hold(HAND_OVER, 'begin'), stage.hold(HAND_OVER, 'begin')] as const;
      const answering = [scenario.answer(first, ['a']), scenario.answer(second, ['b'])];
      await Promise.all(held.map(({ reached }) => reached));
      for (const { release } of held) release();
      for (const answer of answering) expect(await answer).toMatchObject({ claimed: true, delivered: true });
      const prompts = [];
      for (let entry = await scenario.mailbox(session); entry !== undefined; entry = await scenario.mailbox(session)) {
        prompts.push(entry.prompt);
        await scenario.services.mailbox.acknowledge(session.agent, session.sessionId, entry.turn.id, soon());
        await scenario.completeTurn(session, entry.turn.id);
      }
      expect(prompts).toHaveLength(2);
      expect(prompts.join('\n')).toMatch(/Question a[^]*Question b|Question b[^]*Question a/);
    });

    it('ISOLATION: an answer that is given back while its sibling’s is queued holds it back like any open question', async () => {
      const { stage, scenario } = staged();
      const session = await scenario.session();
      const first = await scenario.asked(['a'], session);
      const second = await scenario.asked(['b'], session);
      const held = stage.hold(HAND_OVER, 'begin', ['commit', failWith(BOOM)]);
      const failing = scenario.answer(first, ['a']);
      await held.reached;
      await scenario.answer(second, ['b']);
      expect(await scenario.turns(session)).toHaveLength(1);
      expect(await scenario.messages(session)).toMatchObject([{ queued: true }]);
      held.release();
      await expect(failing).rejects.toMatchObject(ANSWERABLE);
      expect(await scenario.turns(session)).toHaveLength(1);
      await scenario.cancel(first);
      expect((await scenario.mailbox(session))?.prompt).toContain('Question b');
    });

    it('ISOLATION/QUEUE: a queued message does not slip between a claim and its hand-over', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const [turn] = await scenario.turns(asked);
      await scenario.completeTurn(asked, turn?.id ?? '');
      const held = stage.hold(HAND_OVER, 'begin');
      const answering = scenario.answer(asked);
      await held.reached;
      const sent = await scenario.services.messages.admit(ALICE, asked.sessionId, { content: 'by the way' }, soon());
      expect(sent.admission).toBe('queued');
      held.release();
      expect(await answering).toMatchObject({ claimed: true, delivered: true });
      const [, next] = await scenario.turns(asked);
      expect((await scenario.mailbox(asked))?.prompt).toContain('Question q1');
      await scenario.services.mailbox.acknowledge(asked.agent, asked.sessionId, next?.id ?? '', soon());
      await scenario.completeTurn(asked, next?.id ?? '');
      expect((await scenario.mailbox(asked))?.prompt).toBe('by the way');
    });
  });

  describe('an agent whose wait has just ended', () => {
    const env = { REATTACH_MS: '5000' };

    it('WAIT-REATTACH: an answer waits for it and is handed over in the same turn', async () => {
      const scenario = new Scenario(database, { env });
      const asked = await scenario.asked();
      expect(await scenario.look(asked)).toEqual({ kind: 'pending' });
      const answering = scenario.answer(asked);
      await until(() => scenario.owesHandOver(asked));
      const again = await scenario.waiting(asked);
      const won = await answering;
      expect(await again.result).toMatchObject({ response: won.response });
      expect(await scenario.turns(asked)).toHaveLength(1);
    });

    it('WAIT-REATTACH: one that does not come back is resumed when the time is over', async () => {
      const scenario = new Scenario(database, { env: { REATTACH_MS: '200' } });
      const asked = await scenario.asked();
      await scenario.look(asked);
      const startedAt = performance.now();
      expect(await scenario.answer(asked)).toMatchObject({ delivered: true });
      expect(performance.now() - startedAt).toBeGreaterThan(100);
      expect(await scenario.turns(asked)).toHaveLength(2);
    });

    it('WAIT-REATTACH: it waits at most half of the hand-over’s own budget', async () => {
      const scenario = new Scenario(database, { env: { REATTACH_MS: '600000', DELIVERY_BUDGET_MS: '800' } });
      const asked = await scenario.asked();
      await scenario.look(asked);
      expect(await scenario.answer(asked)).toMatchObject({ delivered: true });
      expect(await scenario.turns(asked)).toHaveLength(2);
      scenario.services.waiters.stopExpecting();
    });

    it('WAIT-REATTACH: a rejection does not wait', async () => {
      const scenario = new Scenario(database, { env: { REATTACH_MS: '600000' } });
      const asked = await scenario.asked();
      await scenario.look(asked);
      expect(await scenario.reject(asked)).toMatchObject({ delivered: true });
      scenario.services.waiters.stopExpecting();
    });

    it('WAIT-REATTACH: a client that vanished is not waited for, nor is an observer', async () => {
      const scenario = new Scenario(database, { env: { REATTACH_MS: '600000' } });
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked);
      waiting.leave();
      await waiting.result;
      await scenario.look(asked, ALICE);
      expect(await scenario.answer(asked)).toMatchObject({ delivered: true });
      expect(await scenario.turns(asked)).toHaveLength(2);
    });
  });
});
