import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Lets go of what the run was given, and waits until all of it is gone. */
export default async function globalTeardown(): Promise<void> {
  const run = (globalThis as { clarionTestRun?: ChildProcess }).clarionTestRun;
  if (run === undefined || run.exitCode !== null) return;
  const gone = once(run, 'exit');
  run.stdin?.end('done\n');
  await gone;
}
