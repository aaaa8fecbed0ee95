/** A middle and how far half of the values lie around it. */
export interface Spread {
  readonly median: number;
  /** The quartiles. */
  readonly low: number;
  readonly high: number;
  readonly count: number;
}

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Linear between the two nearest values. @param q from 0 to 1 */
export function quantile(values: readonly number[], q: number): number {
  const sorted = Float64Array.from(values).sort();
  return quantileOfSorted(sorted, q);
}

function quantileOfSorted(sorted: Float64Array, q: number): number {
  if (sorted.length === 0) throw new Error('there is no quantile of nothing');
  const place = (sorted.length - 1) * q;
  const below = sorted[Math.floor(place)] ?? NaN;
  const above = sorted[Math.ceil(place)] ?? NaN;
  return below + (above - below) * (place - Math.floor(place));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = Float64Array.from(values).sort();
  return {
    median: quantileOfSorted(sorted, 0.5),
    low: quantileOfSorted(sorted, 0.25),
    high: quantileOfSorted(sorted, 0.75),
    count: sorted.length,
  };
}

/**
 * Where the ratio of the medians of two series lies, by drawing from each again and again (percentile bootstrap).
 * @param confidence e.g. 0.99
 */
export function ratioInterval(
  a: readonly number[],
  b: readonly number[],
  confidence: number,
  random: () => number,
  draws = 1000,
): Interval {
  const ratios = Float64Array.from({ length: draws }, () => drawnMedian(a, random) / drawnMedian(b, random)).sort();
  return {
    low: quantileOfSorted(ratios, (1 - confidence) / 2),
    high: quantileOfSorted(ratios, (1 + confidence) / 2),
  };
}

function drawnMedian(values: readonly number[], random: () => number): number {
  const drawn = new Float64Array(values.length);
  for (let index = 0; index < drawn.length; index += 1) {
    drawn[index] = values[Math.floor(random() * values.length)] ?? NaN;
  }
  return quantileOfSorted(drawn.sort(), 0.5);
}
