import { expect } from '@jest/globals';
import { RestCaller } from './callers.js';

/** The samples of one scrape, by their name and labels as they stand in the text: `up{job="x"}` → 1. */
export async function scrape(url: string, token?: string): Promise<ReadonlyMap<string, number>> {
  const { status, text } = await new RestCaller(url, token).get('/metrics');
  expect([status, text]).toEqual([200, text]);
  const samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, sample, value] = /^([^#\s].*) (\S+)$/.exec(line) ?? [];
    if (sample !== undefined) samples.set(sample, Number(value));
  }
  return samples;
}
