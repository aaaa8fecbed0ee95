import { BenchError } from '../lib/bench-error.js';
import { compare, type Side } from '../lib/compare.js';
import { HttpClient } from '../lib/http-client.js';
import { column, ratioRow, type ResultRow } from '../lib/results.js';
import { moveActiveBundles, USER } from '../lib/seed.js';
import type { BenchContext, Site, Sites } from '../lib/site.js';
import { messagesText, type TableSize } from '../lib/sizes.js';

export const PAGE = 50;

/** 5.4: the first page, with superseded questions behind it and then ahead of it. */
export async function measureListing(context: BenchContext, { large, small }: Sites): Promise<ResultRow[]> {
  const { samples, warmUp } = context.sizes;
  const options = { samples, warmUp, random: context.random };
  const a = (size: TableSize): string => `${messagesText(size)}, ${size.active.toLocaleString('en')} active bundles`;
  const [what, against] = [a(context.sizes.large), a(context.sizes.small)];
  const superseded = context.sizes.large.superseded.toLocaleString('en');

  context.say('first page, superseded questions behind it');
  const [behind, ofSmall] = await compare(pages(large), pages(small), options);
  const rows = [
    ratioRow(
      {
        row: 'listing',
        database: context.engine,
        measure: `first page of ${PAGE}, ${superseded} superseded questions behind it`,
      },
      column(what, behind),
      column(against, ofSmall),
      2,
    ),
  ];
  context.say('first page, superseded questions ahead of it');
  await large.run(moveActiveBundles(context.engine));
  if (context.engine === 'postgres') await large.run('VACUUM (ANALYZE) task_session_messages');
  const [ahead, again] = await compare(pages(large), pages(small), options);
  rows.push(
    ratioRow(
      {
        row: 'listing',
        database: context.engine,
        measure: `first page of ${PAGE}, ${superseded} superseded questions ahead of it`,
      },
      column(what, ahead),
      column(against, again),
      3,
    ),
  );
  return rows;
}

function pages(site: Site): Side {
  const client = new HttpClient(site.server.url, USER.token);
  return {
    sample: async () => {
      const reply = await client.send('GET', `/api/v1/clarification?limit=${PAGE}`);
      assertPage(reply.status, reply.text, PAGE);
      return reply.milliseconds;
    },
    cpu: () => site.server.cpu(),
  };
}

/** @throws BenchError unless it is a full page with another behind it */
export function assertPage(status: number, text: string, limit: number): void {
  const page = status === 200 ? JSON.parse(text) : undefined;
  if (page?.count !== limit || page.bundles.length !== limit || page.next_cursor === '') {
    throw new BenchError(`the listing gave ${status} ${text.slice(0, 200)}`);
  }
}
