import type { Machine } from './machine.js';
import type { Column, ResultRow } from './results.js';
import type { Profile, Sizes } from './sizes.js';

/** Everything that one run found, as it is written to the file. */
export interface Report {
  readonly madeAt: string;
  readonly seconds: number;
  readonly profile: Profile;
  readonly machine: Machine;
  readonly postgres?: Readonly<Record<string, string>>;
  readonly sizes: Sizes;
  readonly rows: readonly ResultRow[];
}

const DATABASES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const;
const WARNING: Readonly<Record<Profile, string | undefined>> = {
  full: undefined,
  quick: 'quick: smaller sizes and fewer samples than the targets are meant for',
  smoke: 'smoke: tiny sizes, the ratios mean nothing',
};

/** What was run, where and with what, one line each. */
export function headOf(report: Omit<Report, 'rows' | 'seconds'>): string[] {
  const { machine, sizes, postgres } = report;
  const drivers = Object.entries(machine.drivers).map(([name, version]) => `${name} ${version}`);
  const { large, small } = sizes;
  const number = (value: number): string => value.toLocaleString('en');
  return [
    `${report.madeAt}${machine.commit === undefined ? '' : `, commit ${machine.commit}`}`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, ${machine.system}`,
    `Node ${machine.node}, SQLite ${machine.sqlite} (write-ahead log, synchronous FULL), ${drivers.join(', ')}`,
    ...(postgres === undefined
      ? []
      : [
          `PostgreSQL ${Object.entries(postgres)
            .map(([name, value]) => (name === 'server_version' ? value : `${name} ${value}`))
            .join(', ')}`,
        ]),
    `${number(large.messages)} messages (${number(large.active)} active bundles, ${number(large.superseded)} superseded questions) against ${number(small.messages)} (${number(small.active)} active)`,
    `${number(sizes.samples)} samples of each side, ${number(sizes.readSamples)} for "not found", after ${number(sizes.warmUp)} that do not count, in interleaved pairs`,
    ...(WARNING[report.profile] === undefined ? [] : [WARNING[report.profile] ?? '']),
  ];
}

const COLUMNS = ['measure', 'compared', 'median (quartiles)', 'cpu', 'ratio', 'target', 'verdict'] as const;

/** Two lines for each row: the two that are compared, one below the other. */
function linesOf(row: ResultRow): string[][] {
  const second = row.b === undefined ? [] : [['', row.b.what, spreadText(row.b), cpuText(row.b), '', '', '']];
  return [
    [row.measure, row.a.what, spreadText(row.a), cpuText(row.a), row.shown, row.target, row.verdict],
    ...second,
    ...(row.note === undefined ? [] : [[row.note, '', '', '', '', '', '']]),
  ];
}

function spreadText({ median, low, high, count, unit }: Column): string {
  if (count === 1) return `${plain(median)}${unit === '' ? '' : ` ${unit}`}`;
  return `${median.toFixed(2)} ${unit} (${low.toFixed(2)}–${high.toFixed(2)})`;
}

function plain(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}

function cpuText({ cpu }: Column): string {
  return cpu === undefined ? '' : `${cpu.toFixed(2)} ms`;
}

/** An aligned table of one database's rows. */
export function tableText(database: ResultRow['database'], rows: readonly ResultRow[]): string {
  const lines = [[...COLUMNS], ...rows.filter((row) => row.database === database).flatMap(linesOf)];
  const widths = COLUMNS.map((_, index) => Math.max(...lines.map((line) => (line[index] ?? '').length)));
  const text = lines.map((line) =>
    line
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [DATABASES[database], ...text].join('\n');
}

/** The head and both tables as they stand in docs/performance.md. */
export function reportMarkdown(report: Report): string {
  const parts = [headOf(report).map((line) => `- ${line}`)];
  for (const database of ['sqlite', 'postgres'] as const) {
    const rows = report.rows.filter((row) => row.database === database);
    if (rows.length === 0) continue;
    const cells = (line: readonly string[]): string =>
      `| ${line.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
    parts.push([`### ${DATABASES[database]}`]);
    parts.push([
      cells(COLUMNS),
      cells(COLUMNS.map(() => '---')),
      ...rows.map((row) => {
        const [first = [], ...more] = linesOf(row);
        return cells(
          first.map((cell, index) => [cell, ...more.map((line) => line[index] ?? '')].filter(Boolean).join('<br>')),
        );
      }),
    ]);
  }
  return parts.map((lines) => lines.join('\n')).join('\n\n');
}

export const MARKERS = ['<!-- last run: begin -->', '<!-- last run: end -->'] as const;

/** The document with what stands between the markers replaced. @throws Error when it has no markers */
export function withTable(document: string, table: string): string {
  const [begin, end] = MARKERS;
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from < 0 || to < from) throw new Error(`there are no lines ${begin} and ${end} in it`);
  return `${document.slice(0, from + begin.length)}\n\n${table}\n\n${document.slice(to)}`;
}
