import { beforeAll, expect, it } from '@jest/globals';
import { DomainError } from '../../src/common/domain-error.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { barrier } from '../support/barrier.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { ALICE, Scenario, soon, type Asked } from '../support/scenario.js';
import { NOT_DELIVERED, UNKNOWN, type Script } from '../support/scripted-port.js';
import { Stage } from '../support/stage.js';

const BOTH = ['a', 'b'];
const ROUNDS = 8;

describeEachEngine('hand-overs and what happens at the same instant', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  /** The first transactions of these names begin together, once all of them are there. */
  function together(...names: string[]): Scenario {
    const stage = new Stage();
    const all = barrier(names.length);
    for (const name of names) stage.do(name, ['begin', all]);
    return new Scenario(database, { wrap: stage.wrap, env: { REATTACH_MS: '0', DELIVERY_BUDGET_MS: '5000' } });
  }

  /** Nothing is left that nobody sees to, and no answer is in two turns. */
  async function expectSettled(scenario: Scenario, asked: Asked): Promise<void> {
    const { rows: turns } = await database.reader.query<{ metadata: string }>(
      soon(),
      'SELECT metadata FROM task_session_turns WHERE task_session_id = $1',
      [asked.sessionId],
    );
    const documents = turns.map(({ metadata }) => JSON.parse(metadata) as Record<string, unknown>);
    expect(documents.filter((document) => 'prompt_dispatch_pending' in document)).toEqual([]);
    const carrying = documents.filter((document) => document['resumed_from_pending_id'] === asked.pendingId);
    const [status] = await scenario.statuses(asked);
    expect(carrying.length).toBeLessThanOrEqual(status === 'answered' ? 1 : 0);
    expect(await scenario.owesHandOver(asked)).toBe(false);
    const running = (await scenario.turns(asked)).filter((turn) => turn.completed_at === null);
    expect(running.length).toBeLessThanOrEqual(1);
  }

  const webhookAsked = async (scenario: Scenario) => scenario.asked(BOTH, await scenario.webhookSession());

  /** What the responder was told of a hand-over that may have failed. */
  const outcomeOf = (answering: Promise<unknown>): Promise<string> =>
    answering.then(
      (told) => `delivered ${(told as { delivered: boolean }).delivered}`,
      (error: unknown) => `retryable ${(error as { retryable?: boolean }).retryable}`,
    );

  it('RESTORE/SUPERSEDE: a restore and a new turn: answerable again and then history, never both', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const scenario = together('delivery.restore', 'turn.open');
      const asked = await webhookAsked(scenario);
      scenario.services.port.next(NOT_DELIVERED);
      const [outcome] = await Promise.all([outcomeOf(scenario.answer(asked, BOTH)), scenario.openTurn(asked)]);
      expect(outcome).toBe('retryable true');
      expect(await scenario.statuses(asked)).toEqual(['pending', 'pending']);
      expect(await scenario.isActive(asked)).toBe(false);
      await expectSettled(scenario, asked);
    }
  });

  it('RESTORE/SESSION-STATES: a restore and a final state: whichever comes first, the responder is told what is so', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const scenario = together('delivery.restore', 'session.update');
      const asked = await webhookAsked(scenario);
      scenario.services.port.next(NOT_DELIVERED);
      const [outcome] = await Promise.all([outcomeOf(scenario.answer(asked, BOTH)), scenario.end(asked)]);
      const statuses = await scenario.statuses(asked);
      expect([outcome, ...statuses].join()).toMatch(
        /^(retryable true,expired,expired|retryable false,answered,answered)$/,
      );
      await expectSettled(scenario, asked);
    }
  });

  it('HANDOVER-WAITER/RECOVER-INTENTS: a confirmation and the reconciliation: what is owned is left alone', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const scenario = together('delivery.hand-over', 'delivery.recover');
      const asked = await scenario.asked(BOTH);
      const waiting = await scenario.waiting(asked);
      const answering = scenario.answer(asked, BOTH);
      // It sees the intent, because the confirmation waits for it.
      const reconciling = (async () => {
        while (!(await scenario.owesHandOver(asked))) await new Promise((resolve) => setImmediate(resolve));
        await scenario.services.recovery.reconcile();
      })();
      const won = await answering;
      await reconciling;
      expect(won).toMatchObject({ claimed: true, delivered: true });
      expect(await waiting.result).toMatchObject({ response: won.response });
      expect(await scenario.statuses(asked)).toEqual(['answered', 'answered']);
      await expectSettled(scenario, asked);
    }
  });

  it('RESERVATION-BARRIER/SERIAL: a dispatch, a new turn, a message and the reconciliation: one turn each, in one order', async () => {
    const reactions: (Script | typeof UNKNOWN)[] = [() => ({ kind: 'accepted' }), UNKNOWN, NOT_DELIVERED];
    for (let round = 0; round < 2 * reactions.length; round += 1) {
      const scenario = together('delivery.attempt', 'turn.open', 'message.admit');
      const asked = await webhookAsked(scenario);
      const reaction = reactions[round % reactions.length];
      if (reaction !== undefined) scenario.services.port.next(reaction);
      const say = { content: 'Hello?', client_message_id: `m-${round}` };
      const answering = outcomeOf(scenario.answer(asked, BOTH));
      const [outcome] = await Promise.all([
        answering,
        scenario.openTurn(asked),
        scenario.services.messages.admit(ALICE, asked.sessionId, say, soon()),
        scenario.services.recovery.reconcile(),
      ]);
      expect(['delivered true', 'delivered false', 'retryable true', 'retryable false']).toContain(outcome);
      await expectSettled(scenario, asked);
      const turns = await scenario.turns(asked);
      expect(new Set(turns.map((turn) => turn.started_at)).size).toBe(turns.length);
      expect((await scenario.messages(asked)).filter(({ content }) => content === 'Hello?')).toHaveLength(1);
    }
  });

  it('ISOLATION/HANDOVER-WEBHOOK: two bundles of one turn answered at once: each answer is in one turn, or waits for one', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const scenario = together('bundle.claim', 'bundle.claim');
      const first = await webhookAsked(scenario);
      const second = await scenario.asked(['c'], first);
      const told = await Promise.all([scenario.answer(first, BOTH), scenario.answer(second, ['c'])]);
      expect(told).toMatchObject([{ claimed: true }, { claimed: true }]);
      for (const asked of [first, second]) await expectSettled(scenario, asked);
      const prompts = await scenario.messages(first);
      expect(prompts).toHaveLength(2);
      expect(prompts.filter(({ queued }) => queued).length).toBeLessThanOrEqual(1);
    }
  });

  it('WAIT-INACTIVE/HANDOVER-WEBHOOK: a task deleted while its answer is dispatched and its agent waits leaves nothing behind', async () => {
    for (const step of ['delivery.attempt', 'delivery.publish'] as const) {
      const scenario = together(step, 'task.delete');
      const asked = await webhookAsked(scenario);
      const answering = scenario.answer(asked, BOTH).catch((error: unknown) => error);
      const [, told] = await Promise.all([scenario.services.tasks.delete(UNSCOPED, asked.taskId, soon()), answering]);
      expect(told instanceof DomainError || (told as { claimed?: boolean }).claimed === true).toBe(true);
      expect(await scenario.rows(asked)).toEqual([]);
      const left = await database.reader.query(soon(), 'SELECT id FROM task_session_turns WHERE task_session_id = $1', [
        asked.sessionId,
      ]);
      expect(left.rows).toEqual([]);
    }
  });
});
