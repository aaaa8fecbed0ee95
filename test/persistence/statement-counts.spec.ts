import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { UNSCOPED } from '../../src/identity/caller.js';
import { describeEachEngine } from '../support/engines.js';
import { plantMessages } from '../support/plant-messages.js';
import { questionOf } from '../support/question.js';
import { ALICE, Scenario, soon, type SessionOf } from '../support/scenario.js';
import { StatementRecorder } from '../support/statement-recorder.js';

const IDS = ['q1', 'q2', 'q3', 'q4'];

/** How many statements an operation sends outside of transactions (`read`) and in each of them. */
type Counts = Readonly<Record<string, number>>;

interface Operation {
  readonly title: string;
  readonly sends: Counts;
  /** Arranges what it needs and returns the operation itself; `ids` are the questions of a bundle. */
  readonly prepare: (scenario: Scenario, ids: readonly string[]) => Promise<() => Promise<unknown>>;
}

const create = (scenario: Scenario, session: SessionOf, ids: readonly string[], context: string) => () =>
  scenario.services.requests.create(
    session.agent,
    { session_id: session.sessionId, questions: ids.map(questionOf), context },
    soon(),
  );

const OPERATIONS: readonly Operation[] = [
  {
    title: 'asking in a new session, which gets its first turn',
    sends: { read: 1, 'bundle.create': 6 },
    prepare: async (scenario, ids) => create(scenario, await scenario.session(), ids, 'because'),
  },
  {
    title: 'asking once more in a turn',
    sends: { read: 1, 'bundle.create': 4 },
    prepare: async (scenario, ids) => create(scenario, await scenario.asked(ids), ids, 'another context'),
  },
  {
    title: 'asking the same again, which writes nothing',
    sends: { read: 1, 'bundle.create': 3 },
    prepare: async (scenario, ids) => create(scenario, await scenario.asked(ids), ids, 'because'),
  },
  {
    title: 'opening a turn, which supersedes what is open in the one before it',
    sends: { read: 1, 'turn.open': 6 },
    prepare: async (scenario, ids) => {
      const asked = await scenario.asked(ids);
      return () => scenario.openTurn(asked);
    },
  },
  {
    title: 'reading a bundle',
    sends: { read: 3 },
    prepare: async (scenario, ids) => {
      const { pendingId } = await scenario.asked(ids);
      return () => scenario.services.requests.get(ALICE, pendingId, soon());
    },
  },
  {
    title: 'declining while nobody waits',
    sends: { read: 2, 'bundle.claim': 4, 'delivery.hand-over': 4 },
    prepare: async (scenario, ids) => {
      const asked = await scenario.asked(ids);
      return () => scenario.reject(asked);
    },
  },
  {
    title: 'answering while nobody waits, which opens the next turn',
    sends: { read: 2, 'bundle.claim': 4, 'delivery.hand-over': 9 },
    prepare: async (scenario, ids) => {
      const asked = await scenario.asked(ids);
      return () => scenario.answer(asked, ids);
    },
  },
  {
    title: 'answering while the agent waits, until it has the answer',
    sends: { read: 2, 'bundle.claim': 4, 'delivery.hand-over': 6 },
    prepare: async (scenario, ids) => {
      const asked = await scenario.asked(ids);
      const waiting = await scenario.waiting(asked);
      return async () => {
        await scenario.answer(asked, ids);
        await waiting.result;
      };
    },
  },
  {
    title: 'answering after somebody else (R2a: one look more)',
    sends: { read: 3, 'bundle.claim': 3 },
    prepare: async (scenario, ids) => {
      const asked = await scenario.asked(ids);
      await scenario.reject(asked);
      return () => scenario.answer(asked, ids);
    },
  },
  {
    title: 'cancelling',
    sends: { read: 1, 'bundle.cancel': 4 },
    prepare: async (scenario, ids) => {
      const asked = await scenario.asked(ids);
      return () => scenario.cancel(asked);
    },
  },
  {
    title: 'waiting for what was declined',
    sends: { read: 4 },
    prepare: async (scenario, ids) => {
      const asked = await scenario.asked(ids);
      await scenario.reject(asked);
      return () => scenario.look(asked);
    },
  },
  {
    title: 'waiting for what was answered, which takes the prompt out of the mailbox',
    sends: { read: 3, 'resumption.acknowledge': 3 },
    prepare: async (scenario, ids) => {
      const asked = await scenario.asked(ids);
      await scenario.answer(asked, ids);
      return () => scenario.look(asked);
    },
  },
  {
    title: 'waiting once more for what was answered',
    sends: { read: 3 },
    prepare: async (scenario, ids) => {
      const asked = await scenario.asked(ids);
      await scenario.answer(asked, ids);
      await scenario.look(asked);
      return () => scenario.look(asked);
    },
  },
];

describeEachEngine('how many statements an operation sends', (engine) => {
  const recorder = new StatementRecorder();
  let scenario: Scenario;

  beforeAll(async () => {
    scenario = new Scenario(await engine.createDatabase(), { recorder });
  });

  async function sentBy(act: () => Promise<unknown>): Promise<Counts> {
    recorder.clear();
    await act();
    const counts: Record<string, number> = {};
    for (const { in: unit } of recorder.statements) counts[unit] = (counts[unit] ?? 0) + 1;
    return counts;
  }

  it.each(OPERATIONS)('PLAN: $title: as many for four questions as for one', async ({ prepare, sends }) => {
    expect(await sentBy(await prepare(scenario, IDS.slice(0, 1)))).toEqual(sends);
    expect(await sentBy(await prepare(scenario, IDS))).toEqual(sends);
  });
});

describeEachEngine('how many statements a list sends', (engine) => {
  const recorder = new StatementRecorder();
  let scenario: Scenario;

  beforeAll(async () => {
    const database = await engine.createDatabase();
    scenario = new Scenario(database, { recorder });
    await plantMessages(database, { ordinary: 100, bundles: 100, superseded: 100, active: 120 });
    for (let number = 0; number < 60; number += 1) {
      await scenario.services.tasks.create(UNSCOPED, { title: `task ${number}` }, soon());
    }
  });
  beforeEach(() => recorder.clear());

  it.each([1, 50, 200])('PLAN, L10: a page of at most %i bundles is one', async (limit) => {
    const page = await scenario.services.listing.list(ALICE, { limit }, soon());
    expect(page.count).toBe(Math.min(limit, 120));
    expect(recorder.statements.map((statement) => statement.in)).toEqual(['read']);
  });

  it.each([1, 50])('PLAN, T: a page of %i tasks is two, the second for their pending actions', async (limit) => {
    expect((await scenario.services.tasks.list(ALICE, { limit }, soon())).tasks).toHaveLength(limit);
    expect(recorder.statements.map((statement) => statement.in)).toEqual(['read', 'read']);
  });

  it('PLAN, PENDING-ACTION: the sessions of a task are three, however many sessions', async () => {
    const { sessions } = await scenario.services.sessions.listOfTask(ALICE, 'planted', soon());
    expect(sessions).toHaveLength(121);
    expect(sessions.filter((session) => session.pending_action === 'clarification')).toHaveLength(120);
    expect(recorder.statements.map((statement) => statement.in)).toEqual(['read', 'read', 'read']);
  });
});
