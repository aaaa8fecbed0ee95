import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A real process running one of `test/support/children/*.ts`; each line it prints is one answer. */
export interface Child {
  readonly pid: number;
  /** Resolves with the next line; rejects when the process ends first, with what it wrote to standard error. */
  nextLine(): Promise<string>;
  /** Writes one line to its standard input. */
  tell(line: string): void;
  /** Resolves with the exit status, or the signal's name, when it has ended. */
  readonly ended: Promise<number | string>;
  kill(signal: NodeJS.Signals): Promise<void>;
}

const children = new Set<Child>();

export function startChild(script: string, args: readonly string[], env: Record<string, string> = {}): Child {
  const folder = join(process.cwd(), 'test/support');
  const child = spawn(
    process.execPath,
    ['--import', `file://${join(folder, 'run-typescript.js')}`, join(folder, 'children', script), ...args],
    { stdio: 'pipe', env: { ...process.env, ...env } },
  );
  let complaints = '';
  child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const started: Child = {
    pid: child.pid ?? -1,
    nextLine: async () => {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`${script} ended: ${complaints}`);
      return value;
    },
    tell: (line) => void child.stdin.write(`${line}\n`),
    ended: once(child, 'exit').then(([status, signal]) => (status ?? signal) as number | string),
    kill: async (signal) => {
      child.kill(signal);
      await started.ended;
    },
  };
  children.add(started);
  void started.ended.then(() => children.delete(started));
  return started;
}

/** Ends those that a failed test left running. Call in `afterEach`. */
export async function endChildren(): Promise<void> {
  await Promise.all([...children].map((child) => child.kill('SIGKILL')));
}
