import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { runCommandLine } from '../../src/cli/program.js';
import { serverAddress } from '../../src/cli/server-address.js';
import { loadEnv } from '../../src/config/env.js';
import { builtProgram } from '../support/built-program.js';

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
  const main = join(await builtProgram(), 'src/cli/main.js');
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [main, ...args],
      { cwd: folder, env: { PATH: process.env['PATH'], ...environment }, timeout: 25_000 },
      (error, stdout, stderr) =>
        resolve({ status: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr }),
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
