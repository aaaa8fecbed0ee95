import { HttpClient, RECORD_HEADER } from '../lib/http-client.js';
import { single, type ResultRow } from '../lib/results.js';
import { USER } from '../lib/seed.js';
import type { BenchContext, Sites } from '../lib/site.js';
import { assertPage, PAGE } from './listing.js';

const RECORDINGS = 5;

/** 5.4: how many statements a page takes, whatever is on it. */
export async function measureStatements(context: BenchContext, { large: site }: Sites): Promise<ResultRow[]> {
  const client = new HttpClient(site.server.url, USER.token);
  const once = async (limit: number): Promise<number> => {
    const statements = await site.server.record(async () => {
      const path = `/api/v1/clarification?limit=${limit}`;
      const reply = await client.send('GET', path, undefined, { [RECORD_HEADER]: 'this' });
      assertPage(reply.status, reply.text, limit);
    });
    return statements.length;
  };
  // What the server does now and then may fall into some of them, and is not the page's.
  const count = async (limit: number): Promise<number> => {
    const counts: number[] = [];
    while (counts.length < RECORDINGS) counts.push(await once(limit));
    return Math.min(...counts);
  };
  const [one, five, fifty] = [await count(1), await count(5), await count(PAGE)];
  client.close();
  const difference = Math.max(one, five, fifty) - Math.min(one, five, fifty);
  return [
    {
      row: 'statements',
      database: context.engine,
      measure: `statements for a page of ${PAGE} bundles, against pages of 1 and 5`,
      a: single(`${PAGE} bundles`, fifty, ''),
      b: single('1 bundle', one, ''),
      value: difference,
      shown: `${one}, ${five}, ${fifty}`,
      target: 'constant',
      verdict: difference === 0 ? 'ok' : `misses by ${difference} statements`,
    },
  ];
}
