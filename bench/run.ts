import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Engine } from '../src/persistence/dialect.js';
import { Random } from '../test/soak/random.js';
import { HELP, parseBenchArguments, UsageError, type BenchArguments, type RowName } from './lib/arguments.js';
import { BenchError } from './lib/bench-error.js';
import { Leftovers } from './lib/leftovers.js';
import { describeMachine } from './lib/machine.js';
import { startPostgres } from './lib/postgres-server.js';
import { headOf, reportMarkdown, tableText, withTable, type Report } from './lib/report.js';
import type { ResultRow } from './lib/results.js';
import { dropLeftOverDatabases, postgresDatabases, sqliteDatabases } from './lib/seeded-databases.js';
import { Site, type BenchContext, type Sites } from './lib/site.js';
import { SIZES } from './lib/sizes.js';
import { measureBare } from './rows/bare.js';
import { measureCrowd } from './rows/crowd.js';
import { measureListing } from './rows/listing.js';
import { measureMcp } from './rows/mcp.js';
import { measureNotFound } from './rows/not-found.js';
import { measureStatements } from './rows/statements.js';
import { measureTableSize } from './rows/table-size.js';
import { measureWaiters } from './rows/waiters.js';

// npm run bench -- --help

const ROOT = join(import.meta.dirname, '..');
const MEASURES: Readonly<Record<RowName, (context: BenchContext, sites: Sites) => Promise<ResultRow[]>>> = {
  'table-size': measureTableSize,
  bare: measureBare,
  mcp: measureMcp,
  'not-found': measureNotFound,
  crowd: measureCrowd,
  statements: measureStatements,
  listing: measureListing,
  waiters: measureWaiters,
};

const print = (line: string): void => void process.stdout.write(`${line}\n`);
/** Progress is for whoever watches, not for whoever reads the result. */
const say = (line: string): void => void process.stderr.write(`  ${line}\n`);

const leftovers = new Leftovers();

try {
  const asked = parseBenchArguments(process.argv.slice(2));
  if (asked === 'help') print(HELP);
  else await bench(asked);
  await leftovers.cleanUp();
} catch (error) {
  const isStopped = leftovers.isCleaning;
  await leftovers.cleanUp();
  if (!isStopped) process.stderr.write(`bench: ${describe(error)}\n`);
  process.exit(isStopped ? 130 : error instanceof UsageError ? 2 : 1);
}

async function bench(asked: BenchArguments): Promise<void> {
  const begun = performance.now();
  if (asked.markdown !== undefined) assertHasTable(asked.markdown);
  build();
  const kept = resolve(asked.cache ?? join(ROOT, 'bench/.cache'));
  const folder = await makeRunFolder(kept, asked.fresh);
  leftovers.folder = folder;
  if (asked.databases.includes('postgres')) {
    leftovers.postgres = await startPostgres(kept, folder);
    await dropLeftOverDatabases(leftovers.postgres.url);
  }
  const { postgres } = leftovers;
  const about = {
    madeAt: new Date().toISOString(),
    profile: asked.profile,
    machine: describeMachine(),
    ...(postgres && { postgres: postgres.settings }),
    sizes: SIZES[asked.profile],
  };
  for (const line of headOf(about)) print(line);
  const rows: ResultRow[] = [];
  for (const engine of asked.databases) {
    const measured = await measure(engine, asked, kept, folder);
    rows.push(...measured);
    print('');
    print(tableText(engine, measured));
  }
  const report: Report = { ...about, seconds: Math.round((performance.now() - begun) / 1000), rows };
  const file = resolve(asked.json ?? join(ROOT, 'bench/results', `${about.madeAt.replaceAll(':', '-')}.json`));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(report, undefined, 2)}\n`);
  if (asked.markdown !== undefined) {
    await writeFile(asked.markdown, withTable(readFileSync(asked.markdown, 'utf8'), reportMarkdown(report)));
  }
  print('');
  print(`${report.seconds} s; figures in ${file}`);
}

async function measure(engine: Engine, asked: BenchArguments, kept: string, folder: string): Promise<ResultRow[]> {
  const random = new Random(1);
  const { postgres } = leftovers;
  const context: BenchContext = {
    engine,
    databases:
      postgres && engine === 'postgres' ? postgresDatabases(postgres.url, folder) : sqliteDatabases(kept, folder),
    sizes: SIZES[asked.profile],
    random: () => random.next(),
    runFolder: folder,
    nodeArgs: asked.cpuProfiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(asked.cpuProfiles)}`],
    say: (line) => say(`${engine}: ${line}`),
  };
  const sites: Sites = {
    large: await Site.open(context, 'large', context.sizes.large),
    small: await Site.open(context, 'small', context.sizes.small),
  };
  const rows: ResultRow[] = [];
  for (const row of asked.rows) rows.push(...(await MEASURES[row](context, sites)));
  await sites.large.close();
  await sites.small.close();
  return rows;
}

function build(): void {
  const script = join(ROOT, 'scripts/build-when-needed.js');
  const { status } = spawnSync(process.execPath, [script], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new BenchError('the product cannot be built');
}

/** Also removes those of runs that are over, and with `fresh` everything that was kept. */
async function makeRunFolder(kept: string, fresh: boolean): Promise<string> {
  await mkdir(kept, { recursive: true });
  for (const name of await readdir(kept)) {
    const pid = /^run-(\d+)$/.exec(name)?.[1];
    const isOver = pid !== undefined && !isRunning(Number(pid));
    const isKept = name.startsWith('sqlite-') || name === 'postgres';
    if (isOver || (fresh && isKept)) await rm(join(kept, name), { recursive: true, force: true });
  }
  const folder = join(kept, `run-${process.pid}`);
  await mkdir(folder, { recursive: true });
  return folder;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function assertHasTable(file: string): void {
  if (!existsSync(file)) throw new UsageError(`--markdown ${file}: there is no such file`);
  try {
    withTable(readFileSync(file, 'utf8'), '');
  } catch (error) {
    throw new UsageError(`--markdown ${file}: ${(error as Error).message}`);
  }
}

function describe(error: unknown): string {
  if (error instanceof BenchError || error instanceof UsageError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
