import { setTimeout as pause } from 'node:timers/promises';
import { Answerer, DETACHED_ANSWER, REJECTION } from '../lib/answers.js';
import { BenchError } from '../lib/bench-error.js';
import { HttpClient } from '../lib/http-client.js';
import { column, ratioRow, type ResultRow } from '../lib/results.js';
import { QUESTION, USER } from '../lib/seed.js';
import { onPostgres } from '../lib/seeded-databases.js';
import type { BenchContext, Site, Sites } from '../lib/site.js';
import type { Bundle } from '../lib/stock.js';

// Statistics reach PostgreSQL's view of them after a transaction has ended, at most once a second.
const STATISTICS_MS = 1_200;

/** 5.4: many callers at once, all on one bundle and each on a bundle of its own. */
export async function measureCrowd(context: BenchContext, { small }: Sites): Promise<ResultRow[]> {
  return [await onOneBundle(context, small), await onManyBundles(context, small)];
}

async function onOneBundle(context: BenchContext, site: Site): Promise<ResultRow> {
  const { callers, rounds } = context.sizes;
  context.say(`${callers} callers on one bundle`);
  const client = await connected(site, callers);
  const deadlocks = await deadlocksOf(context, site);
  const bundles = await site.stock.bundles(DETACHED_ANSWER.stock, rounds);
  const samples: number[] = [];
  for (const bundle of bundles) samples.push(await race(client, bundle, callers));
  client.close();
  const locked = (await deadlocksOf(context, site)) - deadlocks;
  const shown = `1 winner, ${callers - 1} told, 0 errors, ${locked} deadlocks`;
  return {
    row: 'crowd',
    database: context.engine,
    measure: `${callers} callers answering the same bundle, ${rounds} times`,
    a: column('until the last was told', { samples }),
    value: locked,
    shown,
    target: `1 winner, ${callers - 1} told the winner, 0 errors, 0 deadlocks`,
    verdict: locked === 0 ? 'ok' : `misses by ${locked} deadlocks`,
  };
}

/** @returns milliseconds until everybody has been told. @throws BenchError unless there is one winner whom all are told of */
async function race(client: HttpClient, bundle: Bundle, callers: number): Promise<number> {
  const from = performance.now();
  const replies = await Promise.all(
    Array.from({ length: callers }, (_, caller) =>
      client.send('POST', `/api/v1/clarification/${bundle.pendingId}/respond`, answerOf(caller)),
    ),
  );
  const milliseconds = performance.now() - from;
  const refused = replies.find((reply) => reply.status !== 200);
  if (refused !== undefined) throw new BenchError(`a caller of many was told ${refused.status} ${refused.text}`);
  const told = replies.map((reply) => JSON.parse(reply.text));
  const winners = told.flatMap((reply, caller) => (reply.claimed === true ? [caller] : []));
  const [winner] = winners;
  if (winner === undefined || winners.length > 1) throw new BenchError(`${winners.length} of ${callers} callers won`);
  const said = JSON.stringify(told[winner].response);
  if (!said.includes(JSON.stringify(textOf(winner)))) throw new BenchError(`the winner was told ${said}`);
  const other = told.find((reply) => JSON.stringify(reply.response) !== said || reply.status !== 'answered');
  if (other !== undefined) throw new BenchError(`one was told ${JSON.stringify(other)}, the winner ${said}`);
  return milliseconds;
}

function textOf(caller: number): string {
  return `caller ${caller}`;
}

function answerOf(caller: number): unknown {
  return { answers: [{ question_id: QUESTION.id, selected_options: ['sqlite'], custom_text: textOf(caller) }] };
}

async function onManyBundles(context: BenchContext, site: Site): Promise<ResultRow> {
  const { callers, rounds } = context.sizes;
  context.say(`${callers} callers on ${callers} bundles`);
  const client = await connected(site, callers);
  const deadlocks = await deadlocksOf(context, site);
  const alone = new Answerer(site.server, REJECTION);
  const together: number[] = [];
  const oneByOne: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const crowd = await site.stock.bundles(REJECTION.stock, callers);
    const from = performance.now();
    await Promise.all(
      crowd.map(async ({ pendingId }) => {
        const reply = await client.send('POST', `/api/v1/clarification/${pendingId}/respond`, REJECTION.body);
        const json = reply.status === 200 ? JSON.parse(reply.text) : undefined;
        if (json?.claimed !== true || json.delivered !== true) {
          throw new BenchError(`one of ${callers} callers on ${callers} bundles: ${reply.status} ${reply.text}`);
        }
      }),
    );
    together.push((performance.now() - from) / callers);
    const queue = await site.stock.bundles(REJECTION.stock, callers);
    const begun = performance.now();
    for (const bundle of queue) await alone.answer(bundle);
    oneByOne.push((performance.now() - begun) / callers);
  }
  alone.close();
  client.close();
  const locked = (await deadlocksOf(context, site)) - deadlocks;
  const row = ratioRow(
    {
      row: 'crowd',
      database: context.engine,
      measure: `${callers} callers answering ${callers} bundles, ${rounds} times`,
    },
    column('one caller, for each answer', { samples: oneByOne }),
    column(`${callers} callers, for each answer`, { samples: together }),
    undefined,
  );
  return {
    ...row,
    shown: `${row.shown} the throughput, 0 errors, ${locked} deadlocks`,
    target: 'no error, no lock failure',
    verdict: locked === 0 ? 'ok' : `misses by ${locked} deadlocks`,
  };
}

/** As many connections as callers, all of them open. */
async function connected(site: Site, callers: number): Promise<HttpClient> {
  const client = new HttpClient(site.server.url, USER.token, { connections: callers });
  await Promise.all(Array.from({ length: callers }, () => client.send('GET', '/health/live')));
  return client;
}

async function deadlocksOf(context: BenchContext, site: Site): Promise<number> {
  if (context.engine === 'sqlite') return 0;
  await pause(STATISTICS_MS);
  const [row] = await onPostgres(
    site.databaseUrl,
    'SELECT deadlocks::text AS deadlocks FROM pg_stat_database WHERE datname = current_database()',
  );
  return Number(row?.['deadlocks']);
}
