import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../soak/own-postgres.js';
import { onSignal } from '../support/on-signal.js';
import { UnknownTargetError } from './fuzz.js';
import { fuzzServer, type AuthMode } from './fuzzed-server.js';
import { tableOf } from './report.js';

// npm run fuzz -- [--cases N] [--seed S] [--database sqlite|postgres] [--only NAME …]
//
// Requests of every kind to every route and tool that a real server publishes, on both databases unless one is named, with
// authentication; then a tenth as many without. Exits 1 at any fault, also when too few cases get past validation.
//   --only   'POST /api/v1/tasks' or a tool's name, as the table has them; may be given again

const USAGE =
  'usage: npm run fuzz -- [--cases N] [--seed S] [--database sqlite|postgres] [--only NAME …]; N at least 1, S a whole number';
const DATABASES = ['sqlite', 'postgres'] as const;
const WITHOUT_AUTH_SHARE = 0.1;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

function refuse(sentence: string): never {
  process.stderr.write(`${sentence}\n`);
  process.exit(2);
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        cases: { type: 'string', default: '2000' },
        seed: { type: 'string', default: String(randomInt(2 ** 31)) },
        database: { type: 'string' },
        only: { type: 'string', multiple: true },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      say(USAGE);
      process.exit(0);
    }
    const cases = Number(values.cases);
    const seed = Number(values.seed);
    const databases = DATABASES.filter((name) => values.database === undefined || name === values.database);
    if (!Number.isInteger(cases) || cases < 1 || !Number.isInteger(seed) || databases.length === 0) refuse(USAGE);
    return { cases, seed, databases, only: values.only };
  } catch (error) {
    return refuse(`${(error as Error).message}; ${USAGE}`);
  }
}

const { cases, seed, databases, only } = readArguments();
const faults: string[] = [];

async function run(database: (typeof DATABASES)[number], authMode: AuthMode, count: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'clarion-fuzz-'));
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  process.once('exit', removeFolder);
  const postgres = database === 'postgres' ? await startPostgres() : undefined;
  const label = `${database}, authentication ${authMode}, ${count} cases each, seed ${seed}`;
  say(`\n${label}`);
  const startedAt = performance.now();
  try {
    const report = await fuzzServer(
      { databaseUrl: postgres?.url ?? `sqlite:${join(folder, 'fuzz.db')}`, authMode, folder },
      {
        cases: count,
        seed,
        ...(only !== undefined && { only }),
        onTarget: (row) => process.stderr.write(`  ${row.name}: ${row.cases}\n`),
      },
    );
    say(tableOf(report.rows));
    say(`${Math.round((performance.now() - startedAt) / 1000)} s`);
    faults.push(...report.faults.map((fault) => `(${label}) ${fault}`));
  } catch (error) {
    if (error instanceof UnknownTargetError) refuse(error.message);
    faults.push(`(${label}) ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  } finally {
    postgres?.stop();
    removeFolder();
    process.off('exit', removeFolder);
  }
}

// What a run has made goes with this process.
onSignal(() => undefined);
for (const database of databases) {
  await run(database, 'enforced', cases);
  await run(database, 'disabled', Math.ceil(cases * WITHOUT_AUTH_SHARE));
}
if (faults.length > 0) {
  say(`\n${faults.length} faults:`);
  for (const fault of faults) say(`- ${fault}`);
  process.exit(1);
}
say('\nno fault');
process.exit(0);
