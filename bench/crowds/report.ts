import type { CrowdOutcome, Figure } from './crowd.js';
import type { Measurement, Memory } from './probed-server.js';

export interface Row extends CrowdOutcome {
  readonly database: string;
  readonly crowd: string;
  readonly start?: Memory;
  readonly end?: Measurement;
  /** Undefined where the database cannot have any. */
  readonly deadlocks?: number | undefined;
}

const MAX_GROWTH_MB = 50;
const MAX_LOOP_P99_MS = 100;

const megabytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1);
const short = (value: number): string => (Math.abs(value) < 10 ? value.toFixed(1) : value.toFixed(0));

export function reportOf(rows: readonly Row[]): string {
  const head = ['database', 'crowd', 'faults', 'deadlocks', 'heap MB', 'growth', 'loop p99 ms', 'max', 'CPU s'];
  const table = [head, ...rows.map(cellsOf)];
  const widths = head.map((_, column) => Math.max(...table.map((cells) => cells[column]?.length ?? 0)));
  const lines = table.map((cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `\n${lines.join('\n')}\n\n${rows.map(detailsOf).join('\n')}\n`;
}

function cellsOf({ database, crowd, faults, deadlocks, start, end }: Row): string[] {
  const cells = [database, crowd, String(faults.length), deadlocks === undefined ? '-' : String(deadlocks)];
  if (start === undefined || end === undefined) return cells;
  const growth = (end.heapBytes - start.heapBytes) / 1024 / 1024;
  return [
    ...cells,
    `${megabytes(start.heapBytes)} → ${megabytes(end.heapBytes)}`,
    `${short(growth)} ${growth <= MAX_GROWTH_MB ? 'ok' : 'misses'}`,
    `${short(end.loop.p99Ms)} ${end.loop.p99Ms <= MAX_LOOP_P99_MS ? 'ok' : 'misses'}`,
    short(end.loop.maxMs),
    (end.cpuMs / 1000).toFixed(1),
  ];
}

export function detailsOf({ database, crowd, did, faults, figures }: Row): string {
  return [
    `${database}, ${crowd}: ${did}`,
    ...figures.map((figure) => `  ${figure.name}: ${figureText(figure)}`),
    ...faults.map((fault) => `  FAULT: ${fault}`),
    '',
  ].join('\n');
}

function figureText({ value, unit, target }: Figure): string {
  const text = `${unit === 'x' ? value.toFixed(2) : short(value)}${unit === 'x' || unit === '' ? '' : ' '}${unit}`;
  return target === undefined ? text : `${text} (at most ${target}: ${value <= target ? 'ok' : 'misses'})`;
}
