import { parseArgs } from 'node:util';
import type { Engine } from '../../src/persistence/dialect.js';
import type { Profile } from './sizes.js';

export const ROW_NAMES = [
  'table-size',
  'bare',
  'mcp',
  'not-found',
  'crowd',
  'statements',
  'listing',
  'waiters',
] as const;
export type RowName = (typeof ROW_NAMES)[number];

export interface BenchArguments {
  readonly profile: Profile;
  readonly databases: readonly Engine[];
  readonly rows: readonly RowName[];
  /** Where the figures go; undefined for the default. */
  readonly json: string | undefined;
  /** A document whose table is replaced. */
  readonly markdown: string | undefined;
  /** Where the seeded databases are kept; undefined for the default. */
  readonly cache: string | undefined;
  readonly fresh: boolean;
  /** A folder for processor profiles of the servers. */
  readonly cpuProfiles: string | undefined;
}

/** What was typed cannot be used. One line. */
export class UsageError extends Error {}

export const HELP = `npm run bench -- [options]

Measures the ratios of docs/performance.md in one run, on SQLite and on a PostgreSQL that it starts, and prints them with
their targets. Slow is no failure; exit status 1 means that something was wrong: an answer that did not count, a reply
that is not right, or a bare server that does not send what the product sends.

  --quick                smaller sizes, under a minute on an idle machine
  --smoke                tiny sizes, which show only that everything runs
  --database NAME        sqlite or postgres; both without it
  --only ROW             one of ${ROW_NAMES.join(', ')};
                         may be repeated
  --json FILE            the figures (default bench/results/TIME.json)
  --markdown FILE        put the table between the markers of this document
  --cache DIR            where filled databases are kept (default bench/.cache): at most one of each size, some 3 GB in all
  --fresh                fill them anew
  --cpu-profiles DIR     profile the servers; the ratios are then those of profiled servers
  --help`;

/** @returns `help` when that is asked for. @throws UsageError */
export function parseBenchArguments(args: readonly string[]): BenchArguments | 'help' {
  const values = valuesOf(args);
  if (values.help === true) return 'help';
  if (values.quick === true && values.smoke === true) throw new UsageError('--quick and --smoke exclude each other');
  return {
    profile: values.quick === true ? 'quick' : values.smoke === true ? 'smoke' : 'full',
    databases: values.database === undefined ? ['sqlite', 'postgres'] : [oneOf('--database', values.database, ENGINES)],
    rows: values.only === undefined ? ROW_NAMES : values.only.map((row) => oneOf('--only', row, ROW_NAMES)),
    json: notEmpty('--json', values.json),
    markdown: notEmpty('--markdown', values.markdown),
    cache: notEmpty('--cache', values.cache),
    fresh: values.fresh === true,
    cpuProfiles: notEmpty('--cpu-profiles', values['cpu-profiles']),
  };
}

const ENGINES = ['sqlite', 'postgres'] as const;

function valuesOf(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        quick: { type: 'boolean' },
        smoke: { type: 'boolean' },
        database: { type: 'string' },
        only: { type: 'string', multiple: true },
        json: { type: 'string' },
        markdown: { type: 'string' },
        cache: { type: 'string' },
        fresh: { type: 'boolean' },
        'cpu-profiles': { type: 'string' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    const [line] = (error as Error).message.split('\n');
    throw new UsageError(`${line ?? ''} (--help tells more)`);
  }
}

function oneOf<T extends string>(option: string, value: string, known: readonly T[]): T {
  const found = known.find((name) => name === value);
  if (found === undefined) throw new UsageError(`${option} must be one of ${known.join(', ')}, and is "${value}"`);
  return found;
}

function notEmpty(option: string, value: string | undefined): string | undefined {
  if (value === '') throw new UsageError(`${option} must not be empty`);
  return value;
}
