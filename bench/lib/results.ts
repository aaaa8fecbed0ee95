import type { Engine } from '../../src/persistence/dialect.js';
import type { Measured } from './compare.js';
import { spreadOf, type Interval, type Spread } from './statistics.js';

/** One of the two that a row compares. */
export interface Column extends Spread {
  /** e.g. `1,000,000 messages` */
  readonly what: string;
  readonly unit: string;
  /** Processor milliseconds of the server for each sample. */
  readonly cpu?: number;
}

/** One line of the table. */
export interface ResultRow {
  /** The name by which `--only` asks for it. */
  readonly row: string;
  readonly database: Engine;
  readonly measure: string;
  readonly a: Column;
  readonly b?: Column;
  /** What is compared with the target. */
  readonly value: number;
  /** `1.05×`, `12.1 KiB` … */
  readonly shown: string;
  readonly target: string;
  /** `ok`, `misses by …`, or `-` where 5.4 names none. */
  readonly verdict: string;
  readonly interval?: Interval;
  readonly note?: string;
}

export function column(what: string, measured: Measured, unit = 'ms'): Column {
  return { what, unit, ...spreadOf(measured.samples), ...(measured.cpu === undefined ? {} : { cpu: measured.cpu }) };
}

/** A value that stands for itself, without a spread. */
export function single(what: string, value: number, unit: string): Column {
  return { what, unit, median: value, low: value, high: value, count: 1 };
}

/** The ratio of two medians against an upper bound; none where 5.4 names none. */
export function ratioRow(
  about: Pick<ResultRow, 'row' | 'database' | 'measure'> & { readonly note?: string; readonly interval?: Interval },
  a: Column,
  b: Column,
  atMost: number | undefined,
): ResultRow {
  const value = a.median / b.median;
  return {
    ...about,
    a,
    b,
    value,
    shown: `${value.toFixed(2)}×`,
    target: atMost === undefined ? '-' : `≤ ${atMost}×`,
    verdict: atMost === undefined ? '-' : verdictOf(value, atMost, '×'),
  };
}

/** By how much, in the same unit, rounded up so that a miss never reads as none. */
export function verdictOf(value: number, atMost: number, unit: string): string {
  if (value <= atMost) return 'ok';
  return `misses by ${(Math.ceil((value - atMost) * 100) / 100).toFixed(2)}${unit}`;
}
