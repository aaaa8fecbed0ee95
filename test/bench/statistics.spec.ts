import { describe, expect, it } from '@jest/globals';
import { compare } from '../../bench/lib/compare.js';
import { ratioRow, verdictOf } from '../../bench/lib/results.js';
import { median, quantile, ratioInterval, spreadOf } from '../../bench/lib/statistics.js';
import { notFoundVerdict } from '../../bench/rows/not-found.js';
import { Random } from '../soak/random.js';

describe('medians and their spread', () => {
  it('takes the middle, or what lies between the two in the middle, of values in any order', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([100, 9, 11, 10, 8])).toBe(10);
  });

  it('finds quartiles by going linearly from one value to the next', () => {
    expect(quantile([0, 10], 0.25)).toBe(2.5);
    expect(spreadOf([5, 1, 2, 4, 3])).toEqual({ median: 3, low: 2, high: 4, count: 5 });
  });

  it('refuses to make something of nothing', () => {
    expect(() => median([])).toThrow('nothing');
  });
});

describe('where the ratio of two medians lies', () => {
  const noisy = (random: Random, around: number): number[] =>
    Array.from({ length: 400 }, () => around * (1 + 0.2 * (random.next() - 0.5)));

  it('includes 1 for two series of one kind', () => {
    const random = new Random(7);
    const interval = ratioInterval(noisy(random, 10), noisy(random, 10), 0.99, () => random.next());
    expect(interval.low).toBeLessThan(1);
    expect(interval.high).toBeGreaterThan(1);
    expect(notFoundVerdict(1.001, interval)).toBe('ok');
  });

  it('excludes 1 when one takes a tenth longer', () => {
    const random = new Random(7);
    const interval = ratioInterval(noisy(random, 11), noisy(random, 10), 0.99, () => random.next());
    expect(interval.low).toBeGreaterThan(1.03);
    expect(interval.high).toBeLessThan(1.17);
    expect(notFoundVerdict(1.1, interval)).toBe('misses by 10.0 %');
  });
});

describe('samples in pairs', () => {
  it('takes both sides equally often, in either order, and forgets those that warm up', async () => {
    const random = new Random(3);
    const order: string[] = [];
    const side = (name: string, milliseconds: number) => ({
      sample: async (index: number) => {
        order.push(`${name}${index}`);
        return milliseconds;
      },
    });
    const [a, b] = await compare(side('a', 2), side('b', 1), { samples: 20, warmUp: 5, random: () => random.next() });

    expect(a.samples).toEqual(Array.from({ length: 20 }, () => 2));
    expect(b.samples).toEqual(Array.from({ length: 20 }, () => 1));
    const pairs = Array.from({ length: 25 }, (_, index) => order.slice(index * 2, index * 2 + 2));
    for (const [index, pair] of pairs.entries()) expect([...pair].sort()).toEqual([`a${index}`, `b${index}`]);
    expect(new Set(pairs.map((pair) => pair[0]?.[0]))).toEqual(new Set(['a', 'b']));
  });
});

describe('a value against its target', () => {
  const column = (median: number) => ({ what: 'it', unit: 'ms', median, low: median, high: median, count: 9 });

  it('is ok at the target, and misses by what is above it, never by nothing', () => {
    expect(verdictOf(1.3, 1.3, '×')).toBe('ok');
    expect(verdictOf(1.3001, 1.3, '×')).toBe('misses by 0.01×');
    expect(verdictOf(22.5, 20, ' KiB')).toBe('misses by 2.50 KiB');
  });

  it('is the ratio of the medians', () => {
    const about = { row: 'bare', database: 'sqlite', measure: 'an answer' } as const;
    expect(ratioRow(about, column(3), column(2), 1.6)).toMatchObject({ value: 1.5, target: '≤ 1.6×', verdict: 'ok' });
    expect(ratioRow(about, column(4), column(2), 1.6).verdict).toBe('misses by 0.40×');
    expect(ratioRow(about, column(4), column(2), undefined)).toMatchObject({ target: '-', verdict: '-' });
  });
});
