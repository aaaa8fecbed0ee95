import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runCommandLine } from '../../src/cli/program.js';
import { serverAddress } from '../../src/cli/server-address.js';
import { loadEnv } from '../../src/config/env.js';

export interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Record<string, string>;

/** Runs one command in this process: everything but `main.ts`. */
export async function command(args: readonly string[], environment: Environment = {}): Promise<Outcome> {
  let stdout = '';
  let stderr = '';
  const status = await runCommandLine(
    args,
    {
      env: () => loadEnv(environment),
      server: () => serverAddress(environment),
      print: (text) => (stdout += `${text}\n`),
    },
    (line) => (stderr += `${line}\n`),
  );
  return { status, stdout, stderr };
}

/** Runs one command as an operator does, in an empty folder unless told otherwise. */
export async function commandProcess(
  args: readonly string[],
  environment: Environment = {},
  folder: string = emptyFolder(),
): Promise<Outcome> {
  const loader = pathToFileURL(resolve('test/support/run-typescript.js')).href;
  return new Promise((done) => {
    execFile(
      process.execPath,
      ['--import', loader, resolve('src/cli/main.ts'), ...args],
      {
        cwd: folder,
        env: { PATH: process.env['PATH'], CLARION_TEST_FOLDER: process.env['CLARION_TEST_FOLDER'], ...environment },
        timeout: 25_000,
      },
      (error, stdout, stderr) => {
        const failed = typeof error?.code === 'number' ? error.code : -1;
        done({ status: error === null ? 0 : failed, stdout, stderr });
      },
    );
  });
}

export function emptyFolder(): string {
  return mkdtempSync(join(process.env['CLARION_TEST_FOLDER'] ?? '', 'cli-'));
}

/** One line on standard error, nothing on standard output. */
export function refusal(status: 1 | 2, sentence: string): Outcome {
  return { status, stdout: '', stderr: `error: ${sentence}\n` };
}
