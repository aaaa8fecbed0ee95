// Shows for each promise of the list that its test notices when the promise is broken: `npm run test:sabotage`.
//
// In a copy of the tracked files the tests in question are run once as they are, and must pass. Then the product is
// broken by one patch at a time, and a test that cites the patch's rule must fail by an expectation.
//
//   --only RULE   the patches of one rule; may be repeated
//   --list        only says which patches there are
//   --jobs N      how many patches are tried at a time; default 2
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { counts, endRuns, patternOf, runJest, type TestResult } from './jest-run.js';
import { brokenText, ROOT, WorkingCopy } from './working-copy.js';
import { PATCHES } from './patches.js';
import type { Patch } from './patch.js';

const WIDTH = 16;
const INDENT = ' '.repeat(WIDTH + 1);
const BOUND_MS = 120_000;
const UNBROKEN_BOUND_MS = 900_000;

interface Verdict {
  readonly patch: Patch;
  readonly caught: boolean;
  readonly says: string;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true },
      list: { type: 'boolean' },
      jobs: { type: 'string', default: '2' },
    },
  });
  const { only } = values;
  const patches = PATCHES.filter(({ rule }) => only === undefined || only.includes(rule));
  const unknown = (only ?? []).filter((rule) => !patches.some((patch) => patch.rule === rule));
  const jobs = Number(values.jobs);
  if (unknown.length > 0) return refuse(`there is no patch for ${unknown.join(', ')}`);
  if (!Number.isInteger(jobs) || jobs < 1) return refuse('--jobs must be a whole number from 1');
  if (values.list === true) {
    for (const { rule, says, file, spec } of patches) say(`${rule.padEnd(WIDTH)} ${says}\n${INDENT}${file} → ${spec}`);
    return 0;
  }
  for (const patch of patches) brokenText(patch, readFileSync(join(ROOT, patch.file), 'utf8'));

  const startedAt = performance.now();
  const server = await startServer();
  const copies = Array.from({ length: Math.min(jobs, patches.length) }, () => new WorkingCopy());
  process.once('SIGINT', () => {
    endRuns();
    for (const copy of copies) copy.remove();
    process.exit(130);
  });
  try {
    const sound = await unbroken(copies, patches, server.postgres);
    if (sound === undefined) return 1;
    const verdicts: Verdict[] = [];
    const queue = [...patches];
    const work = async (copy: WorkingCopy): Promise<void> => {
      for (let patch = queue.shift(); patch !== undefined; patch = queue.shift()) {
        const verdict = await tryOut(copy, patch, sound, server.postgres);
        verdicts.push(verdict);
        say(`${patch.rule.padEnd(WIDTH)} ${verdict.says}`);
      }
    };
    await Promise.all(copies.map(work));
    const caught = verdicts.filter((verdict) => verdict.caught).length;
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    say(`${caught} of ${patches.length} mistakes noticed, in ${seconds} s`);
    return caught === patches.length ? 0 : 1;
  } finally {
    for (const copy of copies) copy.remove();
    await server.stop();
  }
}

/** The tests in question without any patch; undefined, with the reasons told, when one of them does not pass. */
async function unbroken(
  copies: readonly WorkingCopy[],
  patches: readonly Patch[],
  postgres: string,
): Promise<readonly TestResult[] | undefined> {
  const { tests, problems } = await runJest({
    folder: copies[0]?.folder ?? '',
    specs: [...new Set(patches.map(({ spec }) => spec))],
    pattern: patternOf(patches),
    workers: copies.length,
    postgres,
    boundMs: UNBROKEN_BOUND_MS,
  });
  const failed = tests.filter(({ status }) => status === 'failed');
  const uncited = patches.filter((patch) => !tests.some((test) => counts(test, patch)));
  for (const problem of problems) say(`without any patch: ${problem}`);
  for (const { spec, fullName, failure } of failed) say(`fails without any patch: ${spec} › ${fullName}: ${failure}`);
  for (const { rule, spec, title } of uncited) say(`no test cites ${rule}: ${spec}${title ? ` › …${title}…` : ''}`);
  return problems.length + failed.length + uncited.length === 0 ? tests : undefined;
}

async function tryOut(
  copy: WorkingCopy,
  patch: Patch,
  sound: readonly TestResult[],
  postgres: string,
): Promise<Verdict> {
  const { tests, problems } = await copy.broken(patch, () =>
    runJest({
      folder: copy.folder,
      specs: [patch.spec],
      pattern: patternOf([patch]),
      workers: 1,
      postgres,
      boundMs: BOUND_MS,
    }),
  );
  const passedBefore = new Set(sound.filter((test) => counts(test, patch)).map(({ fullName }) => fullName));
  const ran = tests.filter((test) => passedBefore.has(test.fullName));
  const failed = ran.filter(({ status }) => status === 'failed');
  const red = failed.find(({ byAssertion }) => byAssertion);
  if (red !== undefined) return { patch, caught: true, says: `red  ${red.spec} › ${red.fullName}` };
  const passing = ran.length === 0 ? 'none of its tests ran' : 'all of its tests pass';
  const reason = problems[0] ?? (failed[0] === undefined ? passing : `fails by no expectation: ${failed[0].failure}`);
  return { patch, caught: false, says: `NOT CAUGHT  ${patch.spec}: ${patch.says}\n${INDENT}${reason}` };
}

/** One PostgreSQL for all runs: `test-run.js` starts one, and each run takes its place on it by TEST_DATABASE_URL. */
async function startServer(): Promise<{ postgres: string; stop: () => Promise<void> }> {
  const child = spawn(process.execPath, [join(ROOT, 'test/support/test-run.js'), 'clarion_sabotage'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as { postgres: string; error?: undefined } | { error: string };
    if (said.error !== undefined) throw new Error(`no PostgreSQL for the tests: ${said.error}`);
    const stop = async (): Promise<void> => {
      child.stdin.end('done\n');
      await gone;
    };
    return { postgres: said.postgres, stop };
  }
  throw new Error('no PostgreSQL for the tests');
}

function refuse(sentence: string): number {
  process.stderr.write(`${sentence}\n`);
  return 2;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

process.exitCode = await main();
