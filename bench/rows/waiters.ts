import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Answerer, LIVE_ANSWER, REJECTION, waitersOf } from '../lib/answers.js';
import { BenchError } from '../lib/bench-error.js';
import { compare } from '../lib/compare.js';
import { CrowdOfWaiters } from '../lib/crowd-of-waiters.js';
import type { Memory } from '../lib/probed-process.js';
import { column, ratioRow, single, verdictOf, type ResultRow } from '../lib/results.js';
import { AnswerSide, Site, type BenchContext } from '../lib/site.js';
import { until, type Bundle } from '../lib/stock.js';

const KIB = 1024;
const WAIT_SECONDS = 3_600;
const ALL_WAIT_WITHIN_MS = 180_000;
const SETTLE_MS = 500;
const ANSWERED_AT_THE_END = 3;

/** 5.4: thousands of agents waiting on one process: what each costs in memory, and what an answer takes meanwhile. */
export async function measureWaiters(context: BenchContext): Promise<ResultRow[]> {
  const count = context.sizes.waiters;
  context.say(`${count.toLocaleString('en')} waiting agents`);
  const waited = await Site.open(context, 'waited', context.sizes.small);
  const idle = await Site.open(context, 'idle', context.sizes.small);
  try {
    // The same rows on both, so that only the waiting differs.
    const bundles = await waited.stock.bundles(LIVE_ANSWER.stock, count);
    await idle.stock.bundles(LIVE_ANSWER.stock, count);
    await warmUp(context, waited);
    await warmUp(context, idle);

    const before = await waited.server.memory();
    const file = join(context.runFolder, `${context.engine}-waits.json`);
    const crowd = await CrowdOfWaiters.start(waited.server.url, bundles, WAIT_SECONDS, file);
    try {
      const all = async (): Promise<boolean> => (await waitersOf(waited.server.url)) === count;
      await until('all agents wait', all, ALL_WAIT_WITHIN_MS);
      await pause(SETTLE_MS);
      const after = await waited.server.memory();
      const rows = [...memoryRows(context, before, after), ...(await answerRows(context, waited, idle))];
      if (!(await all())) throw new BenchError('some agents do not wait any more');
      await assertHeard(waited, crowd, bundles);
      return rows;
    } finally {
      // All at once, as when the process is killed: nobody need write down that they have gone.
      await waited.server.kill();
      await crowd.stop();
    }
  } finally {
    await waited.close();
    await idle.close();
  }
}

/** What a first wait and a first answer leave behind in a process is not what each of them costs. */
async function warmUp(context: BenchContext, site: Site): Promise<void> {
  const side = await AnswerSide.on(site, LIVE_ANSWER, context.sizes.warmUp);
  for (let index = 0; index < context.sizes.warmUp; index += 1) await side.sample(index);
  side.close();
}

function memoryRows(context: BenchContext, before: Memory, after: Memory): ResultRow[] {
  const count = context.sizes.waiters;
  const target = 20;
  const row = (name: string, bytes: number): ResultRow => {
    const value = bytes / count / KIB;
    return {
      row: 'waiters',
      database: context.engine,
      measure: `memory for each of ${count.toLocaleString('en')} waiting agents, ${name}`,
      a: single('after garbage collection', value, 'KiB'),
      value,
      shown: `${value.toFixed(1)} KiB`,
      target: `≤ ${target} KiB`,
      verdict: verdictOf(value, target, ' KiB'),
    };
  };
  return [
    row('heap', after.heapUsed + after.external - before.heapUsed - before.external),
    row('resident', after.rss - before.rss),
  ];
}

async function answerRows(context: BenchContext, waited: Site, idle: Site): Promise<ResultRow[]> {
  const { samples, warmUp, waiters } = context.sizes;
  const rows: ResultRow[] = [];
  for (const kind of [REJECTION, LIVE_ANSWER]) {
    const whileWaited = await AnswerSide.on(waited, kind, samples + warmUp);
    const whileIdle = await AnswerSide.on(idle, kind, samples + warmUp);
    const [a, b] = await compare(whileWaited, whileIdle, { samples, warmUp, random: context.random });
    whileWaited.close();
    whileIdle.close();
    rows.push(
      ratioRow(
        { row: 'waiters', database: context.engine, measure: `${kind.name} while others wait` },
        column(`${waiters.toLocaleString('en')} agents wait`, a),
        column('nobody waits', b),
        1.5,
      ),
    );
  }
  return rows;
}

async function assertHeard(site: Site, crowd: CrowdOfWaiters, bundles: readonly Bundle[]): Promise<void> {
  const answerer = new Answerer(site.server, LIVE_ANSWER);
  for (const bundle of bundles.slice(0, ANSWERED_AT_THE_END)) await answerer.respond(bundle);
  answerer.close();
  await until('the agents that were answered heard of it', async () => crowd.ended.length >= ANSWERED_AT_THE_END);
  if (crowd.ended.some((status) => status !== '200')) throw new BenchError(`agents got ${crowd.ended.join(', ')}`);
}
