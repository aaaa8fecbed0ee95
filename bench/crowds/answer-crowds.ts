import type { CrowdContext, CrowdOutcome } from './crowd.js';
import { Faults } from './faults.js';
import type { Reply } from './rest-load.js';
import { median, quantile } from './figures.js';
import type { Asked } from './world.js';

const CALLERS = 64;

/** 64 callers answer one bundle at once, with an agent that waits in every other round: one wins, all are told the same. */
export async function manyOnOne({ world, sizes }: CrowdContext): Promise<CrowdOutcome> {
  const faults = new Faults();
  const took: number[] = [];
  const sessions = await world.sessionsOf(sizes.rounds);
  for (const [round, asked] of (await world.asked(sessions)).entries()) {
    const waiting = round % 2 === 0 ? undefined : world.wait(asked, 50);
    if (waiting !== undefined) await world.until('clarification_active_waiters', '>=', 1);
    const replies = await Promise.all(callers((index) => world.respond(asked, choiceOf(index))));
    took.push(...replies.map(({ ms }) => ms));
    checkOneWinner(replies, faults);
    if (waiting !== undefined) {
      const reply = await waiting;
      if (faults.expect(reply, 200, 'the wait') && !sameDecision(reply, replies))
        faults.add('the agent got another answer');
    }
  }
  return outcome(`${CALLERS} callers answer 1 bundle, ${sizes.rounds} rounds`, faults, took);
}

/** 64 callers answer a bundle each: all win. */
export async function manyOnMany({ world, sizes }: CrowdContext): Promise<CrowdOutcome> {
  const faults = new Faults();
  const took: number[] = [];
  const sessions = await world.sessionsOf(CALLERS);
  for (let round = 0; round < sizes.rounds; round += 1) {
    const asked = await world.asked(sessions);
    const replies = await Promise.all(callers((index) => world.respond(asked[index] as Asked, choiceOf(index))));
    took.push(...replies.map(({ ms }) => ms));
    for (const reply of replies) {
      if (!faults.expect(reply, 200, 'answering')) continue;
      if (reply.body['claimed'] !== true || reply.body['delivered'] !== true) faults.add('an answer did not win alone');
    }
  }
  return outcome(`${CALLERS} callers answer ${CALLERS} bundles, ${sizes.rounds} rounds`, faults, took);
}

function callers<T>(act: (index: number) => T): T[] {
  return Array.from({ length: CALLERS }, (_, index) => act(index));
}

function choiceOf(index: number): 1 | 2 | 'reject' {
  return ([1, 2, 'reject'] as const)[index % 3] ?? 1;
}

function checkOneWinner(replies: readonly Reply[], faults: Faults): void {
  const told = replies.filter((reply) => faults.expect(reply, 200, 'answering'));
  const winners = told.filter(({ body }) => body['claimed'] === true).length;
  if (winners !== 1) faults.add(`${winners} winners of one bundle`);
  // Why the winner declined is for the agent and for the winner.
  const decisions = new Set(told.map(decisionOf));
  if (decisions.size > 1) faults.add(`the callers were told ${decisions.size} different decisions`);
}

function decisionOf({ body }: Reply): string {
  const response = (body['response'] ?? body) as Record<string, unknown>;
  return JSON.stringify([response['answers'], response['rejected'], response['responded_at']]);
}

function sameDecision(wait: Reply, replies: readonly Reply[]): boolean {
  return replies.some((reply) => reply.body['claimed'] === true && decisionOf(reply) === decisionOf(wait));
}

function outcome(did: string, faults: Faults, took: readonly number[]): CrowdOutcome {
  return {
    did,
    faults: faults.list(),
    figures: [
      { name: 'answer, median', value: median(took), unit: 'ms' },
      { name: 'answer, p99', value: quantile(took, 0.99), unit: 'ms' },
    ],
  };
}
