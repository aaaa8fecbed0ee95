import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { wordsOf } from '../support/cited-rules.js';
import type { Patch } from './patch.js';
import { ROOT } from './working-copy.js';

export interface TestResult {
  readonly spec: string;
  /** Of the test and of all suites around it. */
  readonly fullName: string;
  readonly status: 'passed' | 'failed';
  /** Of a failed test: whether an expectation was not met, rather than something thrown or out of time. */
  readonly byAssertion: boolean;
  /** Of a failed test, in one line. */
  readonly failure: string;
}

export interface JestRun {
  readonly tests: readonly TestResult[];
  /** Why specs could not be run, or why there is no result at all. */
  readonly problems: readonly string[];
}

export interface JestOptions {
  readonly folder: string;
  readonly specs: readonly string[];
  /** For `-t`. */
  readonly pattern: string;
  readonly workers: number;
  readonly postgres: string;
  readonly boundMs: number;
}

/** A pattern for `-t` that is true of the tests which count for one of the patches. */
export function patternOf(patches: readonly Patch[]): string {
  const counting = patches.map(({ rule, on, title }) => {
    const word = `(?<![A-Za-z0-9]|[A-Za-z0-9]-)${rule}(?![A-Za-z0-9]|-[A-Za-z0-9])`;
    const engine = on === 'postgres' ? '(?=.*\\(postgres\\))' : '(?!.*\\(postgres\\))';
    const named = title === undefined ? '' : `(?=.*${title.replace(/[^\w\s]/g, '.')})`;
    return `${engine}${named}.*${word}`;
  });
  return `^(?:${[...new Set(counting)].join('|')})`;
}

/** Whether a test counts for a patch. `-t` knows no upper case, so what it let through is looked at again. */
export function counts(test: TestResult, patch: Patch): boolean {
  return (
    test.spec === patch.spec &&
    wordsOf(test.fullName).includes(patch.rule) &&
    test.fullName.includes(patch.title ?? '') &&
    test.fullName.includes('(postgres)') === (patch.on === 'postgres')
  );
}

const running = new Set<() => void>();

/** For a runner that is interrupted. */
export function endRuns(): void {
  for (const end of running) end();
}

/** Runs the repository's own test command, at most for the given time. */
export async function runJest(options: JestOptions): Promise<JestRun> {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: { test: string } };
  const [, ...command] = scripts.test.split(' ');
  const outputFile = join(options.folder, 'jest.json');
  const parallel = options.workers === 1 ? ['--runInBand'] : ['--maxWorkers', `${options.workers}`];
  const child = spawn(
    process.execPath,
    [
      ...command,
      ...['--json', '--outputFile', outputFile, '--testNamePattern', options.pattern, '--forceExit', ...parallel],
      ...['--runTestsByPath', ...options.specs],
    ],
    {
      cwd: options.folder,
      env: { ...process.env, TEST_DATABASE_URL: options.postgres },
      stdio: ['ignore', 'ignore', 'pipe'],
      // A group of its own, so that what is out of time ends with all its workers.
      detached: true,
    },
  );
  const end = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  };
  running.add(end);
  let complaints = '';
  child.stderr.on('data', (chunk: Buffer) => (complaints = (complaints + chunk.toString()).slice(-4000)));
  let isLate = false;
  const bound = setTimeout(() => {
    isLate = true;
    end();
  }, options.boundMs);
  await once(child, 'close');
  clearTimeout(bound);
  running.delete(end);
  if (isLate) return { tests: [], problems: [`did not end within ${options.boundMs / 1000} s`] };
  return readResults(outputFile, options.folder) ?? { tests: [], problems: [`gave no result: ${complaints}`] };
}

interface JestJson {
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[] | null;
      readonly failureDetails: readonly { readonly matcherResult?: unknown }[];
    }[];
  }[];
}

function readResults(file: string, folder: string): JestRun | undefined {
  let json: JestJson;
  try {
    json = JSON.parse(readFileSync(file, 'utf8')) as JestJson;
  } catch {
    return undefined;
  }
  const tests: TestResult[] = [];
  const problems: string[] = [];
  for (const { name, message, assertionResults } of json.testResults) {
    const spec = relative(folder, name);
    if (assertionResults.length === 0 && message !== '') problems.push(`${spec} did not run: ${firstLines(message)}`);
    for (const { fullName, status, failureMessages, failureDetails } of assertionResults) {
      if (status !== 'passed' && status !== 'failed') continue;
      const said = failureMessages ?? [];
      tests.push({
        spec,
        fullName,
        status,
        byAssertion: failureDetails.some((one) => one.matcherResult !== undefined) || said.some(isUnmet),
        failure: firstLines(said.join('\n')),
      });
    }
  }
  return { tests, problems };
}

/**
 * Expectations that leave no matcher result: of a promise that should have been rejected, of supertest's statuses, and
 * those that the counterexample of a property did not meet.
 */
function isUnmet(message: string): boolean {
  const isProperty = message.includes('Property failed after') && message.includes('expect(');
  return isProperty || /^Error: (expect\(|expected \d{3} "[^"]*", got \d{3} )/.test(plain(message));
}

function plain(text: string): string {
  // eslint-disable-next-line no-control-regex -- Jest colours its messages
  return text.replace(/\u001b\[[0-9;]*m/g, '');
}

function firstLines(text: string): string {
  return plain(text).split(/\s+/).join(' ').trim().slice(0, 300);
}
