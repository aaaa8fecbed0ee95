import { fork } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CrowdOutcome } from './crowd.js';
import { keep } from '../lib/children.js';
import type { FromLoad, Load, ToLoad } from './load-process.js';
import type { ProbedServer } from './probed-server.js';

const RUN_TYPESCRIPT = pathToFileURL(join(import.meta.dirname, '../../test/support/run-typescript.js')).href;
/** Beyond any crowd: one that comes to no end hangs, which is a fault and not a reason to wait. */
const AT_MOST_MS = 10 * 60_000;

/** Lets a crowd loose on the server. @throws when it comes to no end */
export function runLoad(load: Load, server: ProbedServer): Promise<CrowdOutcome> {
  const child = keep(
    fork(join(import.meta.dirname, 'load-process.ts'), {
      execArgv: ['--import', RUN_TYPESCRIPT],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    }),
  );
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString()).slice(-4_000)));
  return new Promise<CrowdOutcome>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the crowd came to no end within ${AT_MOST_MS / 60_000} minutes`));
    }, AT_MOST_MS);
    child.on('message', (message: FromLoad) => {
      if (message.kind === 'outcome') return resolve(message.outcome);
      server.ask('memory').then((memory) => child.send({ kind: 'memory', memory } satisfies ToLoad), reject);
    });
    child.on('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`the load ended (${code}): ${stderr.trim()}`));
    });
    child.send({ kind: 'load', load } satisfies ToLoad);
  });
}
