import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { builtProgram } from '../support/built-program.js';

export interface ServerProcess {
  readonly child: ChildProcess;
  /** Resolves with the first line on standard output; rejects when the process ends without one. */
  readonly firstLine: Promise<string>;
  /** Resolves when the process has ended and its output is complete. */
  readonly ended: Promise<{ code: number | null; signal: string | null; stdout: string; stderr: string }>;
}

/** The built server as a supervisor runs it, in `folder`, with nothing in its environment but what is given. */
export async function startServerProcess(env: NodeJS.ProcessEnv, folder: string): Promise<ServerProcess> {
  const main = join(await builtProgram(), 'src/main.js');
  const child = spawn(process.execPath, [main], {
    cwd: folder,
    env: { PATH: process.env['PATH'], PORT: '0', LOG_LEVEL: 'warn', ...env },
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
