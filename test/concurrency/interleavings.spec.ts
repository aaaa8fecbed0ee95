import { beforeAll, describe, expect, it } from '@jest/globals';
import { NotActiveError, NotFoundError } from '../../src/common/domain-error.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import type { Scenario } from '../support/scenario.js';
import { ALICE, soon, type Asked, stagedScenario } from '../support/scenario.js';
import type { Stage } from '../support/stage.js';
import { type Held, type Step } from '../support/stage.js';
import { until } from '../support/until.js';

const BOTH = ['a', 'b'];
/** The first statement of every transaction that depends on a session's turn or state. */
const HAS_THE_LOCK = /FROM task_sessions s WHERE s\.(id|task_id) = \$1/;
/** The claim's own UPDATE: the rows carry its private status now. */
const HAS_MARKED = /^\s*UPDATE task_session_messages AS m/;

interface Rival {
  readonly name: string;
  readonly transaction: string;
  readonly act: (scenario: Scenario, asked: Asked) => Promise<unknown>;
  /** What is left of the question when it came first: the claim finds it closed, or still open. */
  readonly leaves: 'closed' | 'open' | 'gone';
  /** What it is told when the claim came first. */
  readonly afterClaim: 'done' | 'not-active';
  /** Whether it keeps a claim that came first from being handed over. */
  readonly forbidsHandOver: boolean;
}

const RIVALS: readonly Rival[] = [
  {
    name: 'a new turn',
    transaction: 'turn.open',
    act: (scenario, asked) => scenario.openTurn(asked),
    leaves: 'closed',
    afterClaim: 'done',
    forbidsHandOver: true,
  },
  {
    name: 'a final state',
    transaction: 'session.update',
    act: (scenario, asked) => scenario.end(asked),
    leaves: 'closed',
    afterClaim: 'done',
    forbidsHandOver: true,
  },
  {
    name: 'cancelling',
    transaction: 'bundle.cancel',
    act: (scenario, asked) => scenario.cancel(asked),
    leaves: 'closed',
    afterClaim: 'not-active',
    forbidsHandOver: false,
  },
  {
    name: 'detaching',
    transaction: 'turn.complete',
    act: async (scenario, asked) => {
      const [turn] = await scenario.turns(asked);
      return scenario.completeTurn(asked, turn?.id ?? '');
    },
    leaves: 'open',
    afterClaim: 'done',
    forbidsHandOver: false,
  },
  {
    name: 'deleting the task',
    transaction: 'task.delete',
    act: (scenario, asked) => scenario.services.tasks.delete(ALICE, asked.taskId, soon()),
    leaves: 'gone',
    afterClaim: 'done',
    forbidsHandOver: true,
  },
];

describeEachEngine('SERIAL: two transactions on one session, in each order', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  const staged = () => stagedScenario(database);

  /** Waits until somebody stands before a lock: on PostgreSQL one of its backends, on SQLite the queue of writers. */
  async function someoneWaits(stage: Stage, transaction: string | undefined): Promise<void> {
    if (transaction !== undefined) await until(() => stage.begun.includes(transaction));
    if (engine.name === 'sqlite') return;
    await until(async () => {
      const { rows } = await database.reader.query<{ waiting: number }>(
        soon(),
        `SELECT count(*)::int AS waiting FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return (rows[0]?.waiting ?? 0) > 0;
    });
  }

  /** Runs the first until it stands at the step, the second until it waits for it, and lets go. */
  async function inOrder(
    stage: Stage,
    first: { readonly held: Held; readonly start: () => Promise<unknown> },
    second: { readonly transaction: string | undefined; readonly start: () => Promise<unknown> },
  ): Promise<[PromiseSettledResult<unknown>, PromiseSettledResult<unknown>]> {
    const one = first.start();
    await first.held.reached;
    stage.begun.length = 0;
    const two = second.start();
    await someoneWaits(stage, second.transaction);
    first.held.release();
    return Promise.allSettled([one, two]);
  }

  const value = (result: PromiseSettledResult<unknown>): unknown =>
    result.status === 'fulfilled' ? result.value : result.reason;

  describe.each(RIVALS)('an answer and $name', (rival) => {
    it('P2/R2: the answer waits for what came first, and goes by what it left', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked(BOTH);
      const held = stage.hold(rival.transaction, HAS_THE_LOCK);
      const [other, answer] = await inOrder(
        stage,
        { held, start: () => rival.act(scenario, asked) },
        { transaction: 'bundle.claim', start: () => scenario.answer(asked, BOTH) },
      );
      expect(other.status).toBe('fulfilled');
      switch (rival.leaves) {
        case 'open':
          expect(value(answer)).toMatchObject({ claimed: true, delivered: true });
          expect(await scenario.statuses(asked)).toEqual(['answered', 'answered']);
          return;
        case 'closed':
          expect(value(answer)).toBeInstanceOf(NotActiveError);
          expect(new Set(await scenario.statuses(asked)).has('answered')).toBe(false);
          return;
        case 'gone':
          expect(value(answer)).toBeInstanceOf(NotFoundError);
          expect(await scenario.rows(asked)).toEqual([]);
      }
    });

    it.each([
      ['before it has looked', HAS_THE_LOCK],
      ['when it has marked its rows', HAS_MARKED],
      ['when all is written', 'commit'],
    ] as [string, Step][])(
      'R4: it waits for an answer that came first, %s, and the whole bundle is claimed',
      async (_, step) => {
        const { stage, scenario } = staged();
        const asked = await scenario.asked(BOTH);
        const held = stage.hold('bundle.claim', step);
        // What waited for the claim is through before the hand-over begins.
        const handOver = stage.hold('delivery.hand-over', 'begin');
        let answer: Promise<unknown> = Promise.resolve();
        const [, other] = await inOrder(
          stage,
          {
            held,
            start: () => {
              answer = scenario.answer(asked, BOTH);
              void answer.catch(() => undefined);
              return handOver.reached;
            },
          },
          { transaction: rival.transaction, start: () => rival.act(scenario, asked) },
        );
        if (rival.afterClaim === 'done') expect(other.status).toBe('fulfilled');
        else expect(value(other)).toBeInstanceOf(NotActiveError);
        if (rival.leaves !== 'gone') expect(await scenario.statuses(asked)).toEqual(['answered', 'answered']);
        handOver.release();
        const [result] = await Promise.allSettled([answer]);
        if (rival.leaves === 'gone') expect(value(result)).toBeInstanceOf(NotFoundError);
        else if (rival.forbidsHandOver) expect(value(result)).toMatchObject({ code: 'internal', retryable: false });
        else expect(value(result)).toMatchObject({ claimed: true, delivered: true });
        expect(await scenario.owesHandOver(asked)).toBe(false);
      },
    );
  });

  it.each([
    ['before it has looked', HAS_THE_LOCK],
    ['when it has marked its rows', HAS_MARKED],
    ['when all is written', 'commit'],
  ] as [string, Step][])(
    'R2: an answer waits for another that came first, %s, and is told its decision',
    async (_, step) => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked(BOTH);
      const held = stage.hold('bundle.claim', step);
      const [first, second] = await inOrder(
        stage,
        { held, start: () => scenario.answer(asked, BOTH, 'left') },
        { transaction: 'bundle.claim', start: () => scenario.answer(asked, BOTH, 'right') },
      );
      expect(value(first)).toMatchObject({ claimed: true });
      expect(value(second)).toMatchObject({ claimed: false });
      const responses = [first, second].map((result) => (value(result) as { response: unknown }).response);
      expect(JSON.stringify(responses[1])).toBe(JSON.stringify(responses[0]));
      expect(await scenario.turns(asked)).toHaveLength(2);
    },
  );

  it('R4: an answer that waited for one which was rolled back wins', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked(BOTH);
    const held = stage.hold('bundle.claim', HAS_MARKED, [
      'commit',
      () => {
        throw new Error('killed');
      },
    ]);
    const [first, second] = await inOrder(
      stage,
      { held, start: () => scenario.answer(asked, BOTH, 'left') },
      { transaction: 'bundle.claim', start: () => scenario.reject(asked) },
    );
    expect(value(first)).toMatchObject({ code: 'internal', retryable: true });
    expect(value(second)).toMatchObject({ claimed: true, status: 'rejected' });
  });

  it('EXPIRE: expiring waits for a question that is being asked, and expires it too', async () => {
    const { stage, scenario } = staged();
    const session = await scenario.session();
    const held = stage.hold('bundle.create', HAS_THE_LOCK);
    let asked: Asked | undefined;
    const [, end] = await inOrder(
      stage,
      { held, start: async () => (asked = await scenario.asked(BOTH, session)) },
      { transaction: 'session.update', start: () => scenario.end(session) },
    );
    expect(end.status).toBe('fulfilled');
    expect(await scenario.statuses(asked as Asked)).toEqual(['expired', 'expired']);
  });

  it('SUPERSEDE: a question that waited for a new turn belongs to it', async () => {
    const { stage, scenario } = staged();
    const session = await scenario.session();
    await scenario.openTurn(session);
    const held = stage.hold('turn.open', HAS_THE_LOCK);
    let asked: Asked | undefined;
    await inOrder(
      stage,
      { held, start: () => scenario.openTurn(session) },
      { transaction: 'bundle.create', start: async () => (asked = await scenario.asked(BOTH, session)) },
    );
    const [, second] = await scenario.turns(session);
    expect((await scenario.rows(asked as Asked)).map((row) => row.turnId)).toEqual([second?.id, second?.id]);
    expect(await scenario.isActive(asked as Asked)).toBe(true);
  });

  it('WORKFLOW-GUARD: completing a task waits for a question that is being asked, and is refused', async () => {
    const { stage, scenario } = staged();
    const session = await scenario.session();
    const held = stage.hold('bundle.create', HAS_THE_LOCK);
    const [, complete] = await inOrder(
      stage,
      { held, start: () => scenario.asked(BOTH, session) },
      {
        transaction: 'task.complete',
        start: () => scenario.services.tasks.complete(ALICE, session.taskId, soon()),
      },
    );
    expect(value(complete)).toMatchObject({ code: 'conflict' });
  });

  describe('a hand-over and a new turn', () => {
    it('HANDOVER-PULL: a new turn that waited for a resumption follows it; both reach the agent', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const held = stage.hold('delivery.hand-over', HAS_THE_LOCK);
      const [answer] = await inOrder(
        stage,
        { held, start: () => scenario.answer(asked) },
        { transaction: 'turn.open', start: () => scenario.openTurn(asked, 'go on') },
      );
      expect(value(answer)).toMatchObject({ claimed: true, delivered: true });
      const turns = await scenario.turns(asked);
      expect(turns.map((turn) => turn.completed_at === null)).toEqual([false, false, true]);
      expect((await scenario.mailbox(asked))?.turn.id).toBe(turns[1]?.id);
    });

    it('HANDOVER-FORBIDDEN: a resumption that waited for a new turn leaves the answer as history', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      const claimed = stage.hold('delivery.hand-over', 'begin');
      const held = stage.hold('turn.open', HAS_THE_LOCK);
      const answer = scenario.answer(asked);
      await claimed.reached;
      const [turn] = await inOrder(
        stage,
        { held, start: () => scenario.openTurn(asked, 'go on') },
        {
          // Begun before, and held until now.
          transaction: undefined,
          start: () => {
            claimed.release();
            return answer;
          },
        },
      );
      expect(turn.status).toBe('fulfilled');
      await expect(answer).rejects.toMatchObject({ code: 'internal', retryable: false });
      expect(await scenario.turns(asked)).toHaveLength(2);
      expect((await scenario.mailbox(asked))?.prompt).toBe('go on');
    });

    it('RESTORE: a new turn that waited for a restore supersedes the question that it gave back', async () => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked();
      stage.fail('delivery.hand-over', 'commit', new Error('boom'));
      const held = stage.hold('delivery.restore', HAS_THE_LOCK);
      const [answer] = await inOrder(
        stage,
        { held, start: () => scenario.answer(asked) },
        { transaction: 'turn.open', start: () => scenario.openTurn(asked) },
      );
      expect(value(answer)).toMatchObject({ code: 'internal', retryable: true });
      expect(await scenario.statuses(asked)).toEqual(['pending']);
      expect(await scenario.isActive(asked)).toBe(false);
    });
  });

  it('RECOVER-INTENTS/HANDOVER-WAITER: the reconciliation that waits for a confirmation finds it settled', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    const waiting = await scenario.waiting(asked);
    const held = stage.hold('delivery.hand-over', HAS_THE_LOCK);
    const [answer] = await inOrder(
      stage,
      { held, start: () => scenario.answer(asked) },
      { transaction: 'delivery.recover', start: () => scenario.services.recovery.reconcile() },
    );
    expect(value(answer)).toMatchObject({ claimed: true, delivered: true });
    expect(await waiting.result).toMatchObject({ kind: 'response' });
    expect(await scenario.statuses(asked)).toEqual(['answered']);
  });

  it('CREATE-DEDUP: of two equal requests the second waits for the first and finds its bundle', async () => {
    const { stage, scenario } = staged();
    const session = await scenario.session();
    const held = stage.hold('bundle.create', HAS_THE_LOCK);
    const [first, second] = await inOrder(
      stage,
      { held, start: () => scenario.asked(BOTH, session) },
      { transaction: 'bundle.create', start: () => scenario.asked(BOTH, session) },
    );
    expect(value(second)).toEqual(value(first));
    expect(await scenario.rows(value(first) as Asked)).toHaveLength(2);
    expect(await scenario.turns(session)).toHaveLength(1);
  });

  it('ISOLATION: answers to two bundles of one turn wait for each other and both reach the agent', async () => {
    const { stage, scenario } = staged();
    const session = await scenario.session();
    const first = await scenario.asked(['a'], session);
    const second = await scenario.asked(['b'], session);
    const held = stage.hold('bundle.claim', HAS_MARKED);
    const results = await inOrder(
      stage,
      { held, start: () => scenario.answer(first, ['a']) },
      { transaction: 'bundle.claim', start: () => scenario.answer(second, ['b']) },
    );
    for (const result of results) expect(value(result)).toMatchObject({ claimed: true, delivered: true });
    const messages = await scenario.messages(session);
    expect(messages.map((message) => message.content).sort()).toEqual([
      expect.stringContaining('Question a'),
      expect.stringContaining('Question b'),
    ]);
  });
});
