import { beforeAll, describe, expect, it } from '@jest/globals';
import {
  NotActiveError,
  NotFoundError,
  TemporarilyUnavailableError,
  UnauthorizedError,
  WaitTimeoutError,
} from '../../src/common/domain-error.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import type { Scenario } from '../support/scenario.js';
import { ALICE, soon, type Asked, stagedScenario } from '../support/scenario.js';
import { failWith } from '../support/stage.js';
import { until } from '../support/until.js';

const never = new AbortController().signal;
const aMoment = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 30));

/** Whether the promise has settled by now, or does in a moment. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = (): void => void (settled = true);
  promise.then(settle, settle);
  await aMoment();
  return settled;
}

describeEachEngine('waiting', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  const staged = (env?: Record<string, string>) => stagedScenario(database, env);

  const closings: [string, (scenario: Scenario, asked: Asked) => Promise<unknown>][] = [
    ['superseded', (scenario, asked) => scenario.openTurn(asked)],
    ['expired', (scenario, asked) => scenario.end(asked)],
    ['cancelled', (scenario, asked) => scenario.cancel(asked)],
  ];
  const resolutions: [string, (scenario: Scenario, asked: Asked) => ReturnType<Scenario['answer']>][] = [
    ['answered', (scenario, asked) => scenario.answer(asked)],
    ['rejected', (scenario, asked) => scenario.reject(asked)],
  ];

  describe('for what is over', () => {
    it.each(resolutions)(
      'WAIT-RESOLVED: %s and handed over gives the response at once, whoever asks',
      async (_, act) => {
        const { scenario } = staged();
        const asked = await scenario.asked();
        const won = await act(scenario, asked);
        scenario.services.clock.advance(60_000);
        for (const as of [ALICE, asked.agent, UNSCOPED]) {
          expect(await scenario.look(asked, as)).toMatchObject({ kind: 'response', response: won.response });
        }
      },
    );

    it.each(resolutions)('WAIT-RESOLVED/R6: %s is told in the same bytes after a restart', async (_, act) => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      await act(scenario, asked);
      const before = await scenario.look(asked);
      expect(JSON.stringify(await scenario.restarted().look(asked))).toBe(JSON.stringify(before));
    });

    it.each(closings)('WAIT-INACTIVE: %s is not active at once, also after a restart', async (_, close) => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      await close(scenario, asked);
      await expect(scenario.look(asked)).rejects.toThrow(NotActiveError);
      await expect(scenario.restarted().look(asked, ALICE)).rejects.toThrow(NotActiveError);
    });

    it('WAIT-INACTIVE/A2: unknown, deleted and another session’s are not found', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const other = await scenario.session();
      await expect(scenario.look(asked, other.agent)).rejects.toThrow(NotFoundError);
      await expect(scenario.look({ ...asked, pendingId: 'nothing' })).rejects.toThrow(NotFoundError);
      const elsewhere = { signal: never, sessionId: other.sessionId };
      await expect(scenario.services.wait.wait(UNSCOPED, asked.pendingId, elsewhere)).rejects.toThrow(NotFoundError);
      await scenario.services.tasks.delete(ALICE, asked.taskId, soon());
      await expect(scenario.look(asked)).rejects.toThrow(NotFoundError);
      expect(scenario.services.waiters.size).toBe(0);
    });
  });

  describe('for what is active', () => {
    it('WAIT-ACTIVE: blocks until it is resolved; several agents and observers get the same response', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked(['a', 'b']);
      const waits = [];
      for (const as of [asked.agent, UNSCOPED, ALICE]) waits.push(await scenario.waiting(asked, { as }));
      expect(await isSettled(Promise.race(waits.map(({ result }) => result)))).toBe(false);
      const won = await scenario.answer(asked, ['a', 'b']);
      const results = await Promise.all(waits.map(({ result }) => result));
      const bytes = results.map((result) => JSON.stringify(result.kind === 'response' && result.response));
      expect(new Set(bytes)).toEqual(new Set([JSON.stringify(won.response)]));
      expect(scenario.services.waiters.size).toBe(0);
    });

    it('WAIT-ACTIVE: a time-out of 0 looks once and says pending', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      expect(await scenario.look(asked)).toEqual({ kind: 'pending' });
      expect(await scenario.look(asked, ALICE)).toEqual({ kind: 'pending' });
      expect(scenario.services.waiters.size).toBe(0);
    });

    it('WAIT-ACTIVE: a time-out above the cap is the cap', async () => {
      const { scenario } = staged({ WAIT_TIMEOUT_MS: '100', REATTACH_MS: '0' });
      const asked = await scenario.asked();
      const startedAt = performance.now();
      const options = { timeoutMs: 3_600_000, signal: never };
      expect(await scenario.services.wait.wait(ALICE, asked.pendingId, options)).toEqual({ kind: 'pending' });
      expect(performance.now() - startedAt).toBeGreaterThan(90);
    });

    it('WAIT-ACTIVE: over REST the end of the time is wait_timeout', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const waiting = scenario.services.restWait.wait(ALICE, asked, { timeout: 0 }, never, () => undefined);
      await expect(waiting).rejects.toThrow(WaitTimeoutError);
    });

    it.each(closings)('WAIT-INACTIVE: %s during the wait ends it at once, for agent and observer', async (_, close) => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const waits = [await scenario.waiting(asked), await scenario.waiting(asked, { as: ALICE })];
      await close(scenario, asked);
      for (const { result } of waits) await expect(result).rejects.toThrow(NotActiveError);
      expect(scenario.services.waiters.size).toBe(0);
    });

    it('WAIT-INACTIVE: deleted during the wait is not found at once', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const waits = [await scenario.waiting(asked), await scenario.waiting(asked, { as: ALICE })];
      await scenario.services.tasks.delete(ALICE, asked.taskId, soon());
      for (const { result } of waits) await expect(result).rejects.toThrow(NotFoundError);
    });

    it('WAIT-ACTIVE/L12: a bundle that is resolved in part is waited for until the rest is', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked(['a', 'b']);
      const response = { question_id: 'a', selected_options: ['left'], custom_text: '' };
      await scenario.plant(asked, 'a', { status: 'answered', response });
      const waiting = await scenario.waiting(asked);
      expect(await isSettled(waiting.result)).toBe(false);
      const won = await scenario.answer(asked, ['a', 'b'], 'right');
      expect(await waiting.result).toMatchObject({ response: won.response });
    });
  });

  describe('the agent and everybody else', () => {
    it('WAIT-OBSERVER: a user’s wait does not make the bundle live: the session stays as it is and the agent is resumed', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const before = await scenario.snapshot(asked);
      const observing = await scenario.waiting(asked, { as: ALICE });
      expect(scenario.services.waiters.hasAgent(asked.pendingId)).toBe(false);
      expect(await scenario.snapshot(asked)).toEqual(before);
      const won = await scenario.answer(asked);
      const [, next] = await scenario.turns(asked);
      expect(await observing.result).toMatchObject({ response: { ...won.response, turn_id: next?.id } });
      expect((await scenario.mailbox(asked))?.turn.id).toBe(next?.id);
    });

    it('WAIT-OBSERVER: an observer that leaves detaches nothing and is not expected back', async () => {
      const { scenario } = staged({ REATTACH_MS: '600000' });
      const asked = await scenario.asked();
      const before = await scenario.snapshot(asked);
      await scenario.look(asked, ALICE);
      await aMoment();
      expect(await scenario.snapshot(asked)).toEqual(before);
      expect(scenario.services.waiters.returnExpectedWithin(asked.pendingId)).toBe(0);
    });

    it.each([
      ['its own agent', (asked: Asked) => asked.agent],
      ['anybody while authentication is off', () => UNSCOPED],
    ])('WAIT-OBSERVER/OPEN-TURN: %s makes it live, and its session wait for input', async (_, whoIn) => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      expect(await scenario.stateOf(asked)).toBe('running');
      await scenario.waiting(asked, { as: whoIn(asked) });
      expect(scenario.services.waiters.hasAgent(asked.pendingId)).toBe(true);
      expect(await scenario.stateOf(asked)).toBe('waiting_for_input');
      expect(scenario.published.at(-1)).toMatchObject({ type: 'session.state_changed', state: 'waiting_for_input' });
      await scenario.cancel(asked);
    });
  });

  describe('detaching and coming back', () => {
    const detached = (scenario: Scenario) =>
      scenario.typesPublished().filter((type) => type === 'clarification.detached').length;

    it('DETACH: happens when the last agent leaves, once, with an event for each row it changed and one for the bundle', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked(['a', 'b']);
      const agents = [await scenario.waiting(asked), await scenario.waiting(asked)];
      scenario.published.length = 0;
      agents[0]?.leave();
      await agents[0]?.result;
      await aMoment();
      expect(await scenario.isDetached(asked)).toBe(false);
      agents[1]?.leave();
      await until(() => scenario.isDetached(asked));
      const ids = (await scenario.rows(asked)).map((row) => row.id);
      await until(() => detached(scenario) === 1);
      expect(scenario.published).toEqual([
        ...ids.map((messageId) => expect.objectContaining({ type: 'session.message.updated', messageId })),
        expect.objectContaining({ type: 'clarification.detached', pendingId: asked.pendingId }),
      ]);
      expect(await scenario.isActive(asked)).toBe(true);
    });

    it('DETACH: completing the turn detaches what is not detached yet, and events name only that', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const first = await scenario.asked(['a'], session);
      const second = await scenario.asked(['b'], session);
      await scenario.look(first);
      await until(() => scenario.isDetached(first));
      await until(() => detached(scenario) === 1);
      const before = await scenario.snapshotOf(first);
      scenario.services.clock.advance(1_000);
      const [turn] = await scenario.turns(session);
      await scenario.completeTurn(session, turn?.id ?? '');
      expect(await scenario.isDetached(second)).toBe(true);
      expect(await scenario.snapshotOf(first)).toEqual(before);
      expect(
        scenario.published
          .filter(({ type }) => type === 'clarification.detached')
          .map((event) => 'pendingId' in event && event.pendingId),
      ).toEqual([first.pendingId, second.pendingId]);
      await scenario.completeTurn(session, turn?.id ?? '');
      expect(detached(scenario)).toBe(2);
      expect(await scenario.isActive(first)).toBe(true);
      expect(await scenario.answer(first, ['a'])).toMatchObject({ claimed: true });
    });

    it('DETACH: leaves the pending rows of a superseded bundle alone', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const turn = await scenario.openTurn(asked);
      const before = await scenario.snapshotOf(asked);
      await scenario.completeTurn(asked, turn.id);
      expect(await scenario.snapshotOf(asked)).toEqual(before);
    });

    it('DETACH: a response or a refusal that ends the wait detaches nothing', async () => {
      const { scenario, stage } = staged();
      const answered = await scenario.asked();
      const cancelled = await scenario.asked();
      const waits = [await scenario.waiting(answered), await scenario.waiting(cancelled)];
      await scenario.answer(answered);
      await scenario.cancel(cancelled);
      await Promise.allSettled(waits.map(({ result }) => result));
      await aMoment();
      expect(stage.begun).not.toContain('bundle.detach');
    });

    it('REATTACH: a wait that comes back clears the flag', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked(['a', 'b']);
      await scenario.look(asked);
      await until(() => scenario.isDetached(asked));
      const again = await scenario.waiting(asked);
      const rows = await scenario.rows(asked);
      expect(rows.every(({ metadata }) => !('agent_disconnected' in metadata))).toBe(true);
      const won = await scenario.answer(asked, ['a', 'b']);
      expect(await again.result).toMatchObject({ response: won.response });
    });

    it('REATTACH/DETACH: an agent that comes back while it is being detached is attached in the end', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const held = stage.hold('bundle.detach', 'commit');
      await scenario.look(asked);
      await held.reached;
      const again = scenario.waiting(asked);
      await until(() => scenario.services.waiters.hasAgent(asked.pendingId));
      await aMoment();
      held.release();
      await until(() => detached(scenario) === 1);
      await until(async () => !(await scenario.isDetached(asked)));
      const { leave } = await again;
      leave();
      await until(() => scenario.isDetached(asked));
    });

    it('REATTACH/DETACH: an agent that came back before that is not detached at all', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const held = stage.hold('bundle.detach', 'begin');
      await scenario.look(asked);
      await held.reached;
      await scenario.waiting(asked);
      held.release();
      await aMoment();
      expect(await scenario.isDetached(asked)).toBe(false);
      expect(detached(scenario)).toBe(0);
      await scenario.cancel(asked);
    });

    it('WAIT-REATTACH: an agent that left with pending is expected back for a while, until it is there again', async () => {
      const { scenario } = staged({ REATTACH_MS: '600000' });
      const asked = await scenario.asked();
      const { waiters } = scenario.services;
      await scenario.look(asked);
      expect(waiters.returnExpectedWithin(asked.pendingId)).toBeGreaterThan(0);
      const again = await scenario.waiting(asked);
      expect(waiters.returnExpectedWithin(asked.pendingId)).toBe(0);
      again.leave();
      await again.result;
      expect(waiters.returnExpectedWithin(asked.pendingId)).toBe(0);
    });
  });

  describe('while a hand-over is not settled', () => {
    it('WAIT-UNSETTLED/WAIT-ACK: an agent that comes too late for it blocks, then meets the answer once', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const held = stage.hold('delivery.hand-over', 'commit');
      const answering = scenario.answer(asked);
      await held.reached;
      const waiting = await scenario.waiting(asked);
      expect(await isSettled(waiting.result)).toBe(false);
      held.release();
      const won = await answering;
      const [, next] = await scenario.turns(asked);
      expect(await waiting.result).toMatchObject({ response: { ...won.response, turn_id: next?.id } });
      expect(await scenario.mailbox(asked)).toBeUndefined();
    });

    it('WAIT-UNSETTLED: an observer blocks until it is settled', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const held = stage.hold('delivery.hand-over', 'begin');
      const rejecting = scenario.reject(asked, 'no');
      await held.reached;
      const waiting = await scenario.waiting(asked, { as: ALICE });
      expect(await isSettled(waiting.result)).toBe(false);
      expect(await scenario.look(asked, ALICE)).toEqual({ kind: 'pending' });
      held.release();
      const won = await rejecting;
      expect(await waiting.result).toMatchObject({ response: won.response });
    });

    it('WAIT-UNSETTLED: nobody reads the response of a claim that is given back', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const waits = [await scenario.waiting(asked), await scenario.waiting(asked, { as: ALICE })];
      stage.fail('delivery.hand-over', 'commit', new Error('boom'));
      await expect(scenario.answer(asked)).rejects.toMatchObject({ retryable: true });
      for (const { result } of waits) expect(await isSettled(result)).toBe(false);
      const won = await scenario.reject(asked, 'rather not');
      for (const { result } of waits) expect(await result).toMatchObject({ response: won.response });
    });

    it('WAIT-UNSETTLED: what a dead process claimed is waited for until the reconciliation gives it back', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      await scenario.plant(asked, 'q1', { status: 'rejected', response_delivery_pending: true });
      const waiting = await scenario.waiting(asked);
      expect(await isSettled(waiting.result)).toBe(false);
      await scenario.services.recovery.reconcile();
      const won = await scenario.answer(asked);
      expect(await waiting.result).toMatchObject({ response: won.response });
    });
  });

  describe('when the answer is already in a new turn', () => {
    it('WAIT-ACK: the agent’s wait names the turn and acknowledges its mailbox entry, once; repeating it changes nothing', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      await scenario.answer(asked);
      const [, next] = await scenario.turns(asked);
      expect((await scenario.mailbox(asked))?.turn.id).toBe(next?.id);
      const first = await scenario.look(asked);
      expect(first).toMatchObject({ response: { turn_id: next?.id } });
      expect(await scenario.mailbox(asked)).toBeUndefined();
      const before = await scenario.snapshot(asked);
      expect(await scenario.look(asked)).toEqual(first);
      expect(await scenario.restarted().look(asked)).toEqual(first);
      expect(await scenario.snapshot(asked)).toEqual(before);
    });

    it('WAIT-ACK: a queued resumption is taken off the queue and stays in the transcript', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const first = await scenario.asked(['a'], session);
      const sibling = await scenario.asked(['b'], session);
      const won = await scenario.answer(first, ['a']);
      const result = await scenario.look(first);
      expect(result).toMatchObject({ response: won.response });
      expect(result.kind === 'response' && 'turn_id' in result.response).toBe(false);
      expect(await scenario.messages(session)).toMatchObject([{ queued: false }]);
      await scenario.cancel(sibling);
      expect(await scenario.turns(session)).toHaveLength(1);
      expect(await scenario.look(first)).toEqual(result);
    });

    it('WAIT-ACK: only that turn’s entry is acknowledged', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      await scenario.answer(asked);
      const [, resumed] = await scenario.turns(asked);
      await scenario.openTurn(asked, 'something else');
      await scenario.look(asked);
      expect(await scenario.mailbox(asked)).toMatchObject({ prompt: 'something else' });
      expect(resumed).toBeDefined();
    });
  });

  describe('ends that are not the question’s', () => {
    it('MCP-REVOKED/WAIT-ACTIVE: a token that ends ends its wait; the agent is detached and not waited for', async () => {
      const { scenario } = staged({ REATTACH_MS: '600000' });
      const asked = await scenario.asked();
      const waiting = scenario.services.restWait.wait(asked.agent, asked, {}, never, () => undefined);
      await until(() => scenario.services.waiters.hasAgent(asked.pendingId));
      await scenario.services.sessions.renewAgentToken(ALICE, asked.sessionId, soon());
      await expect(waiting).rejects.toThrow(UnauthorizedError);
      await until(() => scenario.isDetached(asked));
      expect(scenario.services.waiters.returnExpectedWithin(asked.pendingId)).toBe(0);
    });

    it('SHUTDOWN: a server that stops ends its waits with pending and has detached them when it closes the database', async () => {
      const { scenario, stage } = staged({ REATTACH_MS: '600000' });
      const asked = [await scenario.asked(), await scenario.asked()];
      const waits = await Promise.all(asked.map((one) => scenario.waiting(one)));
      const detaching = stage.hold('bundle.detach', 'begin');
      scenario.services.wait.onModuleDestroy();
      const stopping = scenario.services.wait.beforeApplicationShutdown();
      await detaching.reached;
      expect(await isSettled(stopping)).toBe(false);
      detaching.release();
      await stopping;
      for (const { result } of waits) expect(await isSettled(result)).toBe(true);
      for (const { result } of waits) expect(await result).toEqual({ kind: 'pending' });
      for (const one of asked) expect(await scenario.isDetached(one)).toBe(true);
      for (const one of asked) expect(scenario.services.waiters.returnExpectedWithin(one.pendingId)).toBe(0);
      expect(await scenario.look(asked[0] as Asked)).toEqual({ kind: 'pending' });
    });

    it('SHUTDOWN: a hand-over that has begun is finished first, and its agent gets the response', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked);
      const held = stage.hold('delivery.hand-over', 'commit');
      const answering = scenario.answer(asked);
      await held.reached;
      scenario.services.wait.onModuleDestroy();
      const stopping = scenario.services.wait.beforeApplicationShutdown();
      expect(await isSettled(stopping)).toBe(false);
      held.release();
      const won = await answering;
      await stopping;
      expect(await waiting.result).toMatchObject({ response: won.response });
    });

    it('SHUTDOWN: an answer does not wait for an agent to come back to a server that stops', async () => {
      const { scenario } = staged({ REATTACH_MS: '600000' });
      const asked = await scenario.asked();
      await scenario.look(asked);
      const answering = scenario.answer(asked);
      await until(() => scenario.owesHandOver(asked));
      scenario.services.wait.onModuleDestroy();
      expect(await answering).toMatchObject({ delivered: true });
      expect(await scenario.turns(asked)).toHaveLength(2);
    });

    it('HANDOVER-WAITER: a response that was handed over counts, whatever else befalls the wait', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const held = stage.hold('bundle.attach', 'begin', ['commit', failWith(new TemporarilyUnavailableError('away'))]);
      const waiting = scenario.waiting(asked);
      await held.reached;
      const won = await scenario.answer(asked);
      held.release();
      expect(await (await waiting).result).toMatchObject({ response: won.response });
      expect(await scenario.turns(asked)).toHaveLength(1);
    });
  });
});
