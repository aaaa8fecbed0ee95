import { randomUUID } from 'node:crypto';
import { REJECTION } from '../lib/answers.js';
import { BenchError } from '../lib/bench-error.js';
import { compare, type Side } from '../lib/compare.js';
import { HttpClient } from '../lib/http-client.js';
import { column, ratioRow, type ResultRow } from '../lib/results.js';
import { USER } from '../lib/seed.js';
import type { BenchContext, Site, Sites } from '../lib/site.js';
import { ratioInterval } from '../lib/statistics.js';

const FOREIGN = 100;
const CONFIDENCE = 0.99;

interface Operation {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly path: (pendingId: string) => string;
  readonly body?: unknown;
}

const OPERATIONS: readonly Operation[] = [
  { name: 'answer', method: 'POST', path: (id) => `/api/v1/clarification/${id}/respond`, body: REJECTION.body },
  { name: 'get', method: 'GET', path: (id) => `/api/v1/clarification/${id}` },
  { name: 'wait', method: 'GET', path: (id) => `/api/v1/clarification/${id}/wait?timeout=0` },
];

/** A3, A5: how long "not found" takes tells nothing about whether somebody else has such a bundle. */
export async function measureNotFound(context: BenchContext, { small }: Sites): Promise<ResultRow[]> {
  const foreign = (await small.stock.bundles('detached', FOREIGN, 'stranger')).map(({ pendingId }) => pendingId);
  const { readSamples: samples, warmUp } = context.sizes;
  const rows: ResultRow[] = [];
  for (const operation of OPERATIONS) {
    context.say(`not found, foreign against missing: ${operation.name}`);
    const ofForeign = refused(small, operation, (index) => foreign[index % foreign.length] ?? '');
    const ofMissing = refused(small, operation, () => randomUUID());
    const [a, b] = await compare(ofForeign, ofMissing, { samples, warmUp, random: context.random });
    const interval = ratioInterval(a.samples, b.samples, CONFIDENCE, context.random);
    const row = ratioRow(
      { row: 'not-found', database: context.engine, measure: `not found, ${operation.name}`, interval },
      column("another user's bundle", a),
      column('no such bundle', b),
      undefined,
    );
    rows.push({
      ...row,
      shown: `${row.value.toFixed(3)}× (${interval.low.toFixed(3)}–${interval.high.toFixed(3)})`,
      target: 'indistinguishable',
      verdict: notFoundVerdict(row.value, interval),
    });
  }
  return rows;
}

/** Whether 1 lies in the interval in which the ratio does, 99 times of 100. */
export function notFoundVerdict(ratio: number, { low, high }: { readonly low: number; readonly high: number }): string {
  if (low <= 1 && 1 <= high) return 'ok';
  return `misses by ${(Math.abs(ratio - 1) * 100).toFixed(1)} %`;
}

function refused(site: Site, { name, method, path, body }: Operation, idOf: (index: number) => string): Side {
  const client = new HttpClient(site.server.url, USER.token);
  return {
    sample: async (index) => {
      const reply = await client.send(method, path(idOf(index)), body);
      if (reply.status !== 404) throw new BenchError(`${name} of a foreign or missing bundle: ${reply.status}`);
      return reply.milliseconds;
    },
  };
}
