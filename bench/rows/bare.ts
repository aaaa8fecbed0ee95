import { setTimeout as pause } from 'node:timers/promises';
import { ANSWER_KINDS, Answerer, assertAnswered, type AnswerKind } from '../lib/answers.js';
import type { BarePlan } from '../lib/bare-plan.js';
import { BareServer, POOL_SIZE, recordPlan } from '../lib/bare-server.js';
import { BenchError } from '../lib/bench-error.js';
import { compare, type Side } from '../lib/compare.js';
import { differenceBetween } from '../lib/recording.js';
import { column, ratioRow, type ResultRow } from '../lib/results.js';
import { AnswerSide, type BenchContext, Site, type Sites } from '../lib/site.js';

const AT_MOST = 1.6;
const SETTLE_MS = 200;

/** 5.4: an answer against the same SQL run bare, on the same driver, behind bare Express. */
export async function measureBare(context: BenchContext, { small }: Sites): Promise<ResultRow[]> {
  context.say('recording what the product sends');
  const recorded: (readonly [AnswerKind, BarePlan])[] = [];
  for (const kind of ANSWER_KINDS) recorded.push([kind, await recordPlan(small, kind)]);
  const settings = await small.server.settings();

  // The bare server's own database, made and stocked by the product, which then leaves it.
  const own = await Site.open(context, 'bare', context.sizes.small);
  await own.server.stop();
  const bare = await BareServer.start(context, {
    engine: context.engine,
    databaseUrl: own.databaseUrl,
    poolSize: POOL_SIZE,
    settings,
    plans: Object.fromEntries(recorded.map(([{ name }, plan]) => [name, plan])),
  });
  const rows: ResultRow[] = [];
  try {
    for (const [kind, plan] of recorded) {
      context.say(`${kind.name}, product against the same SQL bare`);
      rows.push(await measureKind(context, small, own, bare, kind, plan));
    }
  } finally {
    await bare.server.stop();
    await own.close();
  }
  return rows;
}

async function measureKind(
  context: BenchContext,
  small: Site,
  own: Site,
  bare: BareServer,
  kind: AnswerKind,
  plan: BarePlan,
): Promise<ResultRow> {
  const { samples, warmUp } = context.sizes;
  const ofProduct = await AnswerSide.on(small, kind, samples + warmUp);
  const answerer = new Answerer(bare.server, kind);
  const checks = 3;
  const bundles = await own.stock.bundles(kind.stock, samples + warmUp + checks);
  await bare.expect(kind, bundles);
  const waits = await answerer.beginWaits(bundles);
  await pause(SETTLE_MS);
  const at = async (index: number): Promise<number> => {
    const bundle = bundles[index];
    if (bundle === undefined) throw new Error('fewer bundles were made than are answered');
    return answerer.answer(bundle, waits[index]);
  };
  const check = async (index: number): Promise<void> => {
    const bundle = bundles[index];
    if (bundle === undefined) throw new Error('fewer bundles were made than are answered');
    await bare.assertSame(plan, answerer, bundle, waits[index]);
    await assertAnswered(own.stock, kind, bundle);
  };
  // Its first answer opens its connections.
  await at(samples + warmUp + 2);
  await check(samples + warmUp);
  const side: Side = { sample: at, cpu: () => bare.server.cpu() };
  const [a, b] = await compare(ofProduct, side, { samples, warmUp, random: context.random });
  // Once more on both: what was measured is what the product sends, from the first sample to the last.
  await check(samples + warmUp + 1);
  const again = await recordPlan(small, kind);
  const difference = differenceBetween(plan.statements, again.statements);
  if (difference !== undefined) throw new BenchError(`the product has changed what it sends meanwhile: ${difference}`);
  ofProduct.close();
  answerer.close();
  return ratioRow(
    {
      row: 'bare',
      database: context.engine,
      measure: `${kind.name}, product against the same ${plan.statements.length} statements bare`,
    },
    column('Clarion', a),
    column('bare Express and driver', b),
    AT_MOST,
  );
}
