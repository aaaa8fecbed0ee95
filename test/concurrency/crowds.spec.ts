import { beforeAll, expect, it } from '@jest/globals';
import { DomainError, NotActiveError } from '../../src/common/domain-error.js';
import type { Resolution } from '../../src/clarification/clarification-resolver.js';
import { barrier } from '../support/barrier.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { ALICE, Scenario, soon, type Asked, type SessionOf } from '../support/scenario.js';
import { Stage } from '../support/stage.js';

const BOTH = ['a', 'b'];
const RESOLVED = ['answered', 'rejected'];

describeEachEngine('many callers at the same instant', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  /** The first transactions of these names begin together, once all of them are there. */
  function together(...names: string[]): Scenario {
    const stage = new Stage();
    const all = barrier(names.length);
    for (const name of names) stage.do(name, ['begin', all]);
    return new Scenario(database, { wrap: stage.wrap, env: { REATTACH_MS: '0' } });
  }

  const times = <T>(count: number, act: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => act(i));

  /** Everybody answers in their own way. */
  function respond(scenario: Scenario, asked: Asked, ids: readonly string[], index: number): Promise<Resolution> {
    if (index % 3 === 2) return scenario.reject(asked, `reason ${index}`);
    return scenario.answer(asked, ids, index % 3 === 0 ? 'left' : 'right');
  }

  const values = <T>(results: readonly PromiseSettledResult<T>[]): T[] =>
    results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const reasons = (results: readonly PromiseSettledResult<unknown>[]): unknown[] =>
    results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));

  /** What holds of a session whenever nothing is going on in it. */
  async function expectSound(scenario: Scenario, session: SessionOf, bundles: readonly Asked[]): Promise<void> {
    const turns = await scenario.turns(session);
    const starts = turns.map((turn) => turn.started_at);
    expect(new Set(starts).size).toBe(starts.length);
    expect(turns.slice(0, -1).filter((turn) => turn.completed_at === null)).toEqual([]);
    const prompts = (await scenario.messages(session)).map((message) => message.content);
    for (const asked of bundles) {
      const rows = await scenario.rows(asked);
      // Never a part of a bundle, never the claim's private status, never a claim that nobody delivers.
      expect(new Set(rows.map((row) => row.status)).size).toBe(1);
      expect([...RESOLVED, 'pending', 'cancelled', 'expired']).toContain(rows[0]?.status);
      expect(rows.some((row) => row.deliveryPending)).toBe(false);
      const carried = prompts.filter((prompt) => prompt.includes(`Which of ${rows[0]?.questionId ?? ''}?`));
      expect(carried.length).toBeLessThanOrEqual(rows[0]?.status === 'answered' ? 1 : 0);
    }
  }

  it('R3/R1: of 64 who answer one bundle exactly one wins, and all are told the same', async () => {
    const scenario = together(...times(64, () => 'bundle.claim'));
    const asked = await scenario.asked(BOTH);
    const told = await Promise.all(times(64, (index) => respond(scenario, asked, BOTH, index)));
    expect(told.filter((resolution) => resolution.claimed)).toHaveLength(1);
    const said = told.map(({ status, response }) => JSON.stringify([status, { ...response, reject_reason: '' }]));
    expect(new Set(said).size).toBe(1);
    await expectSound(scenario, asked, [asked]);
    expect(await scenario.turns(asked)).toHaveLength(told[0]?.status === 'answered' ? 2 : 1);
  });

  it('HANDOVER-WAITER/R3: eight agents that wait all get what the one winner of sixteen said, in the same turn', async () => {
    const scenario = together(...times(16, () => 'bundle.claim'));
    const asked = await scenario.asked(BOTH);
    const waits = [];
    for (let agent = 0; agent < 8; agent += 1) waits.push(await scenario.waiting(asked));
    const told = await Promise.all(times(16, (index) => respond(scenario, asked, BOTH, index)));
    const winner = told.find((resolution) => resolution.claimed);
    for (const { result } of waits) expect(await result).toMatchObject({ response: winner?.response });
    expect(await scenario.turns(asked)).toHaveLength(1);
    await expectSound(scenario, asked, [asked]);
  });

  it.each([
    ['a new turn', 'turn.open', (scenario: Scenario, asked: Asked) => scenario.openTurn(asked)],
    ['a final state', 'session.update', (scenario: Scenario, asked: Asked) => scenario.end(asked)],
    ['cancelling', 'bundle.cancel', (scenario: Scenario, asked: Asked) => scenario.cancel(asked)],
  ] as const)('R2/SERIAL: answers against %s: one of them wins, whole', async (_, transaction, act) => {
    for (let round = 0; round < 5; round += 1) {
      const scenario = together(...times(6, () => 'bundle.claim'), transaction);
      const asked = await scenario.asked(BOTH);
      const acting = Promise.allSettled([act(scenario, asked)]);
      const results = await Promise.allSettled(times(6, (index) => respond(scenario, asked, BOTH, index)));
      const [other] = await acting;
      const claimed = values(results).filter((resolution) => resolution.claimed);
      const recorded = reasons(results).filter((error) => (error as { retryable?: boolean }).retryable === false);
      const [status] = await scenario.statuses(asked);
      if (RESOLVED.includes(status ?? '')) {
        // Recorded but not handed over, when the other came between claim and hand-over.
        expect(claimed.length + recorded.length).toBe(1);
        expect(values(results).length + recorded.length).toBe(6);
        if (transaction === 'bundle.cancel') expect(other.status).toBe('rejected');
      } else {
        expect(claimed).toEqual([]);
        expect(reasons(results).filter((error) => error instanceof NotActiveError)).toHaveLength(6);
        expect(other.status).toBe('fulfilled');
      }
      await expectSound(scenario, asked, [asked]);
    }
  });

  it('R4/DETACH: answers while agents come and go and the turn completes: one wins and the agent meets it once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const scenario = together(...times(4, () => 'bundle.claim'), 'turn.complete');
      const asked = await scenario.asked(BOTH);
      const [turn] = await scenario.turns(asked);
      const agent = await scenario.waiting(asked);
      const completing = scenario.completeTurn(asked, turn?.id ?? '');
      const answering = Promise.all(times(4, () => scenario.answer(asked, BOTH)));
      agent.leave();
      const told = await answering;
      await completing;
      expect(told.filter((resolution) => resolution.claimed)).toHaveLength(1);
      const met = await agent.result;
      const turns = await scenario.turns(asked);
      // Either its call returned the answer, or the answer resumed it.
      expect(turns).toHaveLength(met.kind === 'response' ? 1 : 2);
      expect(await scenario.look(asked)).toMatchObject({ kind: 'response' });
      await expectSound(scenario, asked, [asked]);
    }
  });

  it('CREATE-DEDUP: sixteen identical requests make one bundle and, in a session without a turn, one turn', async () => {
    const scenario = together(...times(16, () => 'bundle.create'));
    const session = await scenario.session();
    const bundles = await Promise.all(times(16, () => scenario.asked(BOTH, session)));
    expect(new Set(bundles.map((asked) => asked.pendingId)).size).toBe(1);
    expect(await scenario.rows(bundles[0] as Asked)).toHaveLength(2);
    expect(await scenario.turns(session)).toHaveLength(1);
    expect(scenario.typesPublished().filter((type) => type === 'clarification.requested')).toHaveLength(1);
  });

  it('ISOLATION: three bundles of one turn, answered at once by three each: three winners, and each answer reaches the agent once', async () => {
    const scenario = together(...times(9, () => 'bundle.claim'));
    const session = await scenario.session();
    const bundles: Asked[] = [];
    for (const id of ['a', 'b', 'c']) bundles.push(await scenario.asked([id], session));
    const told = await Promise.all(
      times(9, (index) => scenario.answer(bundles[index % 3] as Asked, [['a', 'b', 'c'][index % 3] ?? ''])),
    );
    expect(told.filter((resolution) => resolution.claimed)).toHaveLength(3);
    await expectSound(scenario, session, bundles);
    const prompts = [];
    for (let entry = await scenario.mailbox(session); entry !== undefined; entry = await scenario.mailbox(session)) {
      prompts.push(entry.prompt);
      await scenario.services.mailbox.acknowledge(session.agent, session.sessionId, entry.turn.id, soon());
      await scenario.completeTurn(session, entry.turn.id);
    }
    expect(prompts.sort()).toEqual(['a', 'b', 'c'].map((id) => expect.stringContaining(`Which of ${id}?`)));
  });

  it('WAIT-INACTIVE: a task deleted while many wait and answer ends them all, each with an answer of its own kind', async () => {
    const scenario = together(...times(4, () => 'bundle.claim'), 'task.delete');
    const asked = await scenario.asked(BOTH);
    const waits = [];
    for (let agent = 0; agent < 4; agent += 1) waits.push(await scenario.waiting(asked));
    const deleting = scenario.services.tasks.delete(ALICE, asked.taskId, soon());
    const results = await Promise.allSettled([
      ...times(4, (index) => respond(scenario, asked, BOTH, index)),
      ...waits.map(({ result }) => result),
    ]);
    await deleting;
    for (const error of reasons(results)) expect((error as DomainError).code).toBe('not_found');
    expect(scenario.services.waiters.size).toBe(0);
  });

  it('TURN-TIME/SERIAL: many turns opened at once start one after the other and complete their predecessors', async () => {
    const scenario = together(...times(12, () => 'turn.open'));
    const session = await scenario.session();
    await Promise.all(times(12, (index) => scenario.openTurn(session, `prompt ${index}`)));
    expect(await scenario.turns(session)).toHaveLength(12);
    await expectSound(scenario, session, []);
  });

  it('SERIAL: whatever happens to one session at once leaves it sound', async () => {
    for (let round = 0; round < 8; round += 1) {
      const scenario = new Scenario(database, { env: { REATTACH_MS: '20' } });
      const session = await scenario.session();
      const bundles = [await scenario.asked(['a'], session), await scenario.asked(['b'], session)] as const;
      const [turn] = await scenario.turns(session);
      const acts: (() => Promise<unknown>)[] = [
        () => scenario.answer(bundles[0], ['a']),
        () => scenario.reject(bundles[0]),
        () => scenario.answer(bundles[1], ['b'], 'right'),
        () => scenario.cancel(bundles[1]),
        () => scenario.look(bundles[0]),
        () => scenario.look(bundles[1]),
        () => scenario.completeTurn(session, turn?.id ?? ''),
        () => scenario.services.messages.admit(ALICE, session.sessionId, { content: 'by the way' }, soon()),
        () => (round % 2 === 0 ? scenario.openTurn(session) : scenario.services.recovery.reconcile()),
        () => (round % 4 === 3 ? scenario.end(session) : scenario.asked(['a'], session)),
      ];
      // Another order each round; the callers then race.
      const order = acts.map((_, index) => acts[(index * 3 + round) % acts.length] as () => Promise<unknown>);
      const results = await Promise.allSettled(order.map((act) => act()));
      for (const error of reasons(results)) {
        expect(error).toBeInstanceOf(DomainError);
        expect(['not_active', 'conflict', 'internal', 'temporarily_unavailable']).toContain(
          (error as DomainError).code,
        );
        if ((error as DomainError).code === 'internal') expect(error).toMatchObject({ retryable: false });
      }
      await expectSound(scenario, session, bundles);
    }
  });
});
