import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { resolve as absolute } from 'node:path';
import { pathToFileURL } from 'node:url';

export interface ServerProcess {
  readonly child: ChildProcess;
  /** Resolves with the first line on standard output; rejects when the process ends without one. */
  readonly firstLine: Promise<string>;
  /** Resolves when the process has ended and its output is complete. */
  readonly ended: Promise<{ code: number | null; signal: string | null; stdout: string; stderr: string }>;
}

/**
 * The server as a supervisor runs it, in `folder`, with nothing in its environment but what is given.
 *
 * @param command what to run instead of our sources
 */
export function startServerProcess(
  env: NodeJS.ProcessEnv,
  folder: string,
  [program, ...args]: readonly [string, ...string[]] = ourSources(),
): ServerProcess {
  const child = spawn(program, args, {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      CLARION_TEST_FOLDER: process.env['CLARION_TEST_FOLDER'],
      PORT: '0',
      LOG_LEVEL: 'warn',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, 'close').then((closed) => {
    const [code, signal] = closed as [number | null, string | null];
    return { code, signal, stdout, stderr };
  });
  const firstLine = new Promise<string>((resolve, reject) => {
    child.stdout.on('data', () => {
      const [line, ...rest] = stdout.split('\n');
      if (rest.length > 0) resolve(line ?? '');
    });
    void ended.then(() => reject(new Error(`the server ended without a line: ${stderr}`)));
  });
  // Nobody need ask for it.
  firstLine.catch(() => undefined);
  return { child, firstLine, ended };
}

function ourSources(): [string, ...string[]] {
  const loader = pathToFileURL(absolute('test/support/run-typescript.js')).href;
  return [process.execPath, '--import', loader, absolute('src/main.ts')];
}
