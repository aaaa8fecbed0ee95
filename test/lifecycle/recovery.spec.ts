import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { UNSCOPED } from '../../src/identity/caller.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { Scenario, soon, type Asked } from '../support/scenario.js';
import { Stage } from '../support/stage.js';
import { until } from '../support/until.js';

const both = ['a', 'b'];

describeEachEngine('recovery of claims that were not handed over', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  /** What a process that was killed between claim and hand-over leaves. */
  async function killedAfterClaim(status: 'answered' | 'rejected' = 'answered'): Promise<[Scenario, Asked]> {
    const scenario = new Scenario(database);
    const asked = await scenario.asked(both);
    for (const id of both) {
      const response = { question_id: id, selected_options: ['left'], custom_text: '' };
      await scenario.plant(asked, id, {
        status,
        ...(status === 'answered' && { response }),
        response_delivery_pending: true,
      });
    }
    return [scenario, asked];
  }

  /** Starts the next process, as far as recovery goes. */
  async function boot(scenario: Scenario): Promise<Scenario> {
    const next = scenario.restarted();
    next.services.clock.advance(60_000);
    await next.services.recovery.onApplicationBootstrap();
    await next.services.recovery.beforeApplicationShutdown();
    return next;
  }

  describe('at start', () => {
    it.each(['answered', 'rejected'] as const)(
      'RECOVER-INTENTS/KILL: a claim (%s) in the current turn becomes answerable again: one effect, and no more at the next start',
      async (status) => {
        const [scenario, asked] = await killedAfterClaim(status);
        const next = await boot(scenario);
        const rows = await next.rows(asked);
        expect(rows.map(({ metadata }) => metadata['status'])).toEqual(['pending', 'pending']);
        expect(rows.some(({ metadata }) => 'response' in metadata || 'response_delivery_pending' in metadata)).toBe(
          false,
        );
        expect(rows.map((row) => row.updatedAt)).toEqual([next.services.clock.now(), next.services.clock.now()]);
        expect(next.typesPublished()).toEqual([
          'session.message.updated',
          'session.message.updated',
          'clarification.restored',
        ]);
        const before = await next.snapshot(asked);
        const third = await boot(next);
        expect(third.published).toEqual([]);
        expect(await third.snapshot(asked)).toEqual(before);
        expect(await third.answer(asked, both, 'right')).toMatchObject({ claimed: true, delivered: true });
        expect(await third.turns(asked)).toHaveLength(2);
      },
    );

    it.each([
      ['a newer turn', (scenario: Scenario, asked: Asked) => scenario.openTurn(asked)],
      ['a final state', (scenario: Scenario, asked: Asked) => scenario.end(asked)],
    ])('RECOVER-INTENTS/HANDOVER-FORBIDDEN: after %s it stays as history and only its intent goes', async (_, act) => {
      const [scenario, asked] = await killedAfterClaim();
      await act(scenario, asked);
      const before = await scenario.rows(asked);
      const next = await boot(scenario);
      const after = await next.rows(asked);
      expect(after.map((row) => [row.status, row.response, row.updatedAt])).toEqual(
        before.map((row) => [row.status, row.response, row.updatedAt]),
      );
      expect(after.some((row) => row.deliveryPending)).toBe(false);
      expect(next.typesPublished()).toEqual(['session.message.updated', 'session.message.updated']);
      expect((await boot(next)).published).toEqual([]);
      expect(await next.reject(asked)).toMatchObject({ claimed: false, delivered: true, status: 'answered' });
      expect(await next.turns(asked)).toHaveLength((await scenario.turns(asked)).length);
    });

    it('RESTORE/RECOVER-INTENTS: a sibling row that was terminal before the claim stays as it is', async () => {
      const scenario = new Scenario(database);
      const asked = await scenario.asked(['a', 'b', 'c']);
      const response = { question_id: 'a', selected_options: ['right'], custom_text: '' };
      await scenario.plant(asked, 'a', { status: 'answered', response });
      await scenario.plant(asked, 'b', { status: 'answered', response_delivery_pending: true });
      await scenario.plant(asked, 'c', { status: 'cancelled' });
      const before = await scenario.snapshotOf(asked);
      const next = await boot(scenario);
      const after = await next.snapshotOf(asked);
      expect([after[0], after[2]]).toEqual([before[0], before[2]]);
      expect(await next.statuses(asked)).toEqual(['answered', 'pending', 'cancelled']);
    });

    it.each([
      ['JSON true', true],
      ['"true"', 'true'],
      ['1', 1],
      ['"1"', '1'],
    ])('RECOVER-INTENTS: an intent written as %s counts', async (_, flag) => {
      const [scenario, asked] = await killedAfterClaim();
      for (const id of both) await scenario.plant(asked, id, { response_delivery_pending: flag });
      expect(await (await boot(scenario)).isActive(asked)).toBe(true);
    });

    it.each([
      ['false', false],
      ['null', null],
      ['0', 0],
      ['"yes"', 'yes'],
      ['an object', {}],
    ])('RECOVER-INTENTS: %s is no intent', async (_, flag) => {
      const [scenario, asked] = await killedAfterClaim();
      for (const id of both) await scenario.plant(asked, id, { response_delivery_pending: flag });
      const before = await scenario.snapshot(asked);
      expect(await (await boot(scenario)).snapshot(asked)).toEqual(before);
    });

    it('ODD-ROWS: an intent on a row of no status of ours, or of no bundle, breaks no start and changes nothing', async () => {
      const scenario = new Scenario(database);
      const asked = await scenario.asked(['a', 'b', 'c']);
      await scenario.plant(asked, 'a', { status: 'responding', response_delivery_pending: true });
      await scenario.plant(asked, 'b', { status: { odd: true }, response_delivery_pending: true });
      await scenario.plant(asked, 'c', { pending_id: 5, status: 'answered', response_delivery_pending: true });
      const before = await scenario.snapshot(asked);
      expect(await (await boot(scenario)).snapshot(asked)).toEqual(before);
      // Nobody would ever settle these; the tests below count intents.
      await scenario.services.tasks.delete(UNSCOPED, asked.taskId, soon());
    });

    it('RECOVER-ORDER: one that cannot be seen to fails the start, and the next start tries again', async () => {
      const [scenario, asked] = await killedAfterClaim();
      const stage = new Stage();
      stage.fail('delivery.recover', 'commit', new Error('the disk is full'));
      const failing = scenario.restarted({ wrap: stage.wrap });
      await expect(failing.services.recovery.onApplicationBootstrap()).rejects.toThrow('the disk is full');
      await failing.services.recovery.beforeApplicationShutdown();
      expect(await scenario.owesHandOver(asked)).toBe(true);
      expect(await (await boot(scenario)).isActive(asked)).toBe(true);
    });
  });

  describe('while running', () => {
    it('RECOVER-INTENTS: the reconciliation never restores what this process is handing over', async () => {
      const stage = new Stage();
      const scenario = new Scenario(database, { wrap: stage.wrap });
      const asked = await scenario.asked(both);
      // From the moment the claim is committed, before its caller has heard.
      const committed = stage.hold('bundle.claim', 'committed');
      const handingOver = stage.hold('delivery.hand-over', 'begin');
      const answering = scenario.answer(asked, both);
      for (const { reached, release } of [committed, handingOver]) {
        await reached;
        await scenario.services.recovery.reconcile();
        expect(await scenario.statuses(asked)).toEqual(['answered', 'answered']);
        expect(await scenario.owesHandOver(asked)).toBe(true);
        release();
      }
      expect(await answering).toMatchObject({ claimed: true, delivered: true });
      await scenario.services.recovery.reconcile();
      expect(await scenario.statuses(asked)).toEqual(['answered', 'answered']);
    });

    it('RECOVER-INTENTS: nor what is claimed anew between its look at the intents and its turn', async () => {
      const stage = new Stage();
      const scenario = new Scenario(database, { wrap: stage.wrap });
      const [, asked] = await killedAfterClaim();
      const late = stage.hold('delivery.recover', 'begin');
      const handingOver = stage.hold('delivery.hand-over', 'begin');
      const reconciling = scenario.services.recovery.reconcile();
      await late.reached;
      await new Scenario(database).services.recovery.reconcile();
      const answering = scenario.answer(asked, both);
      await handingOver.reached;
      late.release();
      await reconciling;
      expect(await scenario.owesHandOver(asked)).toBe(true);
      handingOver.release();
      expect(await answering).toMatchObject({ claimed: true, delivered: true });
    });

    it('RECOVER-INTENTS: one that fails holds up no other, and is tried again the next time', async () => {
      const [, first] = await killedAfterClaim();
      const [, second] = await killedAfterClaim();
      const stage = new Stage();
      const scenario = new Scenario(database, { wrap: stage.wrap });
      stage.fail('delivery.recover', 'commit', new Error('boom'));
      await scenario.services.recovery.reconcile();
      const active = [await scenario.isActive(first), await scenario.isActive(second)];
      expect(active.filter(Boolean)).toHaveLength(1);
      await scenario.services.recovery.reconcile();
      expect([await scenario.isActive(first), await scenario.isActive(second)]).toEqual([true, true]);
    });

    it('RECOVER-INTENTS: a round follows every minute until the server stops', async () => {
      const scenario = new Scenario(database);
      const timers = jest.spyOn(globalThis, 'setInterval');
      const cleared = jest.spyOn(globalThis, 'clearInterval');
      try {
        await scenario.services.recovery.onApplicationBootstrap();
        const index = timers.mock.calls.findIndex(([, period]) => period === 60_000);
        const [, asked] = await killedAfterClaim();
        timers.mock.calls[index]?.[0]();
        await until(() => scenario.isActive(asked));
        await scenario.services.recovery.beforeApplicationShutdown();
        expect(cleared.mock.calls).toContainEqual([timers.mock.results[index]?.value]);
      } finally {
        timers.mockRestore();
        cleared.mockRestore();
      }
    });

    it('RECOVER-INTENTS: a round that is still going on is not overtaken by the next', async () => {
      const [, asked] = await killedAfterClaim();
      const stage = new Stage();
      const scenario = new Scenario(database, { wrap: stage.wrap });
      const held = stage.hold('delivery.recover', 'begin');
      const rounds = [scenario.services.recovery.reconcile(), scenario.services.recovery.reconcile()];
      await held.reached;
      expect(stage.begun).toEqual(['delivery.recover']);
      held.release();
      await Promise.all(rounds);
      expect(stage.begun).toEqual(['delivery.recover']);
      expect(await scenario.isActive(asked)).toBe(true);
    });

    it('KILL: killed inside the hand-over’s transaction there is one turn for the answer, or none and it is answerable', async () => {
      const stage = new Stage();
      const scenario = new Scenario(database, { wrap: stage.wrap, env: { REATTACH_MS: '0' } });
      const rolledBack = await scenario.asked(both);
      const committed = await scenario.asked(both);
      // The process is gone at once: none of its code runs any more, and what was not committed is rolled back.
      stage.fail('delivery.hand-over', 'commit', new Error('killed'));
      const dead = [stage.hold('delivery.restore', 'begin'), stage.hold('delivery.hand-over', 'committed')] as const;
      void scenario.answer(rolledBack, both).catch(() => undefined);
      await dead[0].reached;
      void scenario.answer(committed, both).catch(() => undefined);
      await dead[1].reached;
      const next = await boot(scenario);
      expect([await next.isActive(rolledBack), await next.isActive(committed)]).toEqual([true, false]);
      expect([await next.turns(rolledBack), await next.turns(committed)].map(({ length }) => length)).toEqual([1, 2]);
      expect(await next.mailbox(rolledBack)).toBeUndefined();
      expect((await next.mailbox(committed))?.prompt).toContain('Question a');
      expect(await next.reject(committed)).toMatchObject({ claimed: false, delivered: true });
    });
  });
});
