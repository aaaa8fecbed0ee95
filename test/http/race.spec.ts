import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller, type Json } from '../support/callers.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, ask, makeEstate, type Estate } from '../support/estate.js';
import { Stage } from '../support/stage.js';
import { until } from '../support/until.js';

const ROUNDS = 200;
const QUESTIONS = ['q1', 'q2'];

/** What somebody who answered was told: the whole of it, and the bytes of `response` as they came over the wire. */
interface Told {
  readonly claimed: boolean;
  readonly delivered: boolean;
  readonly status: string;
  readonly response: string;
  readonly said: Json;
}

/** Sends an outcome for a bundle through one of the surfaces. Anything but a success is an error of the test. */
type Answerer = (pendingId: string, outcome: object) => Promise<Told>;

function overRest(rest: RestCaller): Answerer {
  return async (pendingId, outcome) => {
    const answer = await rest.post(`/clarification/${pendingId}/respond`, outcome);
    if (answer.status !== 200) throw new Error(`REST: ${answer.status} ${answer.text}`);
    return told(answer.text, outcome);
  };
}

function overMcp(mcp: McpCaller): Answerer {
  return async (pendingId, outcome) => {
    const answer = await mcp.call('answer_question_kandev', { pending_id: pendingId, ...outcome });
    if (answer.isError) throw new Error(`MCP: ${answer.text}`);
    return told(answer.text, outcome);
  };
}

function told(text: string, said: object): Told {
  const { claimed, delivered, status } = JSON.parse(text);
  return { claimed, delivered, status, said, response: text.slice(text.indexOf('"response":')) };
}

/** What caller number `index` says: most answer, some decline, each in words of their own. */
function outcomeOf(index: number): object {
  if (index % 4 === 3) return { rejected: true, reject_reason: `reason of ${index}` };
  return answersTo(QUESTIONS, `text of ${index}`, index % 2 === 0 ? 'left' : 'right');
}

/** R2b: a replay has no reason, because it is not stored. */
const withoutReason = (response: string): string =>
  response.replace(/"reject_reason":"reason of \d+"/, '"reject_reason":""');

function expectOneWinner(all: readonly Told[]): Told {
  const winners = all.filter(({ claimed }) => claimed);
  expect(winners).toHaveLength(1);
  const winner = winners[0] as Told;
  const rejected = 'rejected' in winner.said;
  expect(winner.status).toBe(rejected ? 'rejected' : 'answered');
  expect(new Set(all.map(({ status }) => status))).toEqual(new Set([winner.status]));
  const own = JSON.parse(`{${winner.response}`).response;
  if (rejected) expect(own).toMatchObject({ rejected: true, answers: [], reject_reason: winner.said.reject_reason });
  else expect(own).toMatchObject({ rejected: false, answers: winner.said.answers, reject_reason: '' });
  const losers = all.filter((one) => one !== winner);
  expect(new Set(losers.map(({ response }) => response))).toEqual(new Set([withoutReason(winner.response)]));
  return winner;
}

describeEachEngine('R3', (engine) => {
  let database: TestDatabase;
  let app: RunningApp;
  let agent: RestCaller;
  let estate: Estate;
  const stage = new Stage();
  beforeAll(async () => {
    database = await engine.createDatabase();
    app = await startApp(database, {
      // A busy machine must not turn a race into a 503.
      env: { PRE_CLAIM_BUDGET_MS: '60000' },
      wrap: stage.wrap,
    });
    estate = await makeEstate(new RestCaller(app.url));
    agent = new RestCaller(app.url, estate.agentToken);
    // While another question of the turn is open, an answer would be queued behind it.
    await agent.make('POST', `/clarification/${estate.pendingId}/cancel`);
  });
  afterAll(() => app.close());

  async function answerers(ofEach: number): Promise<Answerer[]> {
    const each = Array.from({ length: ofEach }, async () => [
      overRest(new RestCaller(app.url)),
      overMcp(await McpCaller.open(app.url)),
    ]);
    return (await Promise.all(each)).flat();
  }

  /** Turns of the session that exist because of an answer. */
  async function turns(): Promise<number> {
    return (await agent.make('GET', `/task-sessions/${estate.sessionId}/turns`)).turns.length;
  }

  it(`R12, P1: in ${ROUNDS} rounds of 4 REST and 4 MCP callers, each has one winner, and its answer goes to everybody and to the agent once`, async () => {
    const callers = await answerers(4);
    const before = await turns();
    let answered = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const pendingId = await ask(agent, estate.sessionId, QUESTIONS, `round ${round}`);
      // Everybody is once the first to send.
      const order = callers.map((_, index) => (index + round) % callers.length);
      const all = await Promise.all(order.map((index) => callers[index]!(pendingId, outcomeOf(index))));
      const { status } = expectOneWinner(all);
      if (status === 'answered') answered += 1;
    }
    expect(answered).toBeGreaterThan(0);
    expect(await turns()).toBe(before + answered);
  }, 120_000);

  it('5.4: of 64 callers on one bundle one wins, 63 are told, and none meets an error', async () => {
    const pendingId = await ask(agent, estate.sessionId, QUESTIONS, 'sixty-four');
    const all = await Promise.all((await answerers(32)).map((answer, index) => answer(pendingId, outcomeOf(index))));
    expect(all).toHaveLength(64);
    expectOneWinner(all);
  });

  describe.each([
    ['REST', 'MCP'],
    ['MCP', 'REST'],
  ] as const)('in an order that is placed by hand, %s first and %s second', (first, second) => {
    const outcomes = [
      [
        'an answer',
        'a rejection',
        answersTo(QUESTIONS, 'of the one'),
        { rejected: true, reject_reason: 'reason of 2' },
      ],
      [
        'a rejection',
        'an answer',
        { rejected: true, reject_reason: 'reason of 1' },
        answersTo(QUESTIONS, 'of the other'),
      ],
    ] as const;

    async function arrange(): Promise<{ pendingId: string; one: Answerer; other: Answerer }> {
      const surfaces = { REST: overRest(new RestCaller(app.url)), MCP: overMcp(await McpCaller.open(app.url)) };
      const pendingId = await ask(agent, estate.sessionId, QUESTIONS, randomUUID());
      return { pendingId, one: surfaces[first], other: surfaces[second] };
    }
    const claimsBegun = () => stage.begun.filter((name) => name === 'bundle.claim').length;

    it.each(outcomes)('%s that is all over wins over %s', async (_, __, of, ofOther) => {
      const { pendingId, one, other } = await arrange();
      const all = [await one(pendingId, of), await other(pendingId, ofOther)];
      expect(expectOneWinner(all)).toBe(all[0]);
    });

    it.each(outcomes)(
      '%s that was checked first, but whose claim begins later, loses to %s',
      async (_, __, of, ofOther) => {
        const { pendingId, one, other } = await arrange();
        const held = stage.hold('bundle.claim', 'begin');
        const slow = one(pendingId, of);
        await held.reached;
        const quick = await other(pendingId, ofOther);
        held.release();
        expect(expectOneWinner([await slow, quick])).toBe(quick);
      },
    );

    it.each(outcomes)(
      '%s whose claim is made but not committed wins over %s that arrives meanwhile',
      async (_, __, of, ofOther) => {
        const { pendingId, one, other } = await arrange();
        const held = stage.hold('bundle.claim', 'commit');
        const slow = one(pendingId, of);
        await held.reached;
        const before = claimsBegun();
        const late = other(pendingId, ofOther);
        await until(() => claimsBegun() > before);
        held.release();
        const all = await Promise.all([slow, late]);
        expect(expectOneWinner(all)).toBe(all[0]);
      },
    );

    it.each(outcomes)(
      '%s that is committed but not handed over is told, as not delivered yet, to whoever sends %s',
      async (_, __, of, ofOther) => {
        const { pendingId, one, other } = await arrange();
        const held = stage.hold('bundle.claim', 'committed');
        const slow = one(pendingId, of);
        await held.reached;
        const late = await other(pendingId, ofOther);
        held.release();
        const all = [await slow, late];
        expect(expectOneWinner(all)).toBe(all[0]);
        expect(all.map(({ delivered }) => delivered)).toEqual([true, false]);
        expect((await other(pendingId, ofOther)).delivered).toBe(true);
      },
    );
  });
});
