import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { BenchError } from './bench-error.js';
import { keep, kill } from './children.js';
import type { Bundle } from './stock.js';

const LOADER = pathToFileURL(join(import.meta.dirname, '../../test/support/run-typescript.js')).href;
const SCRIPT = join(import.meta.dirname, '../children/waiters.ts');

/** Agents that wait on connections of another process, so that their memory is not the server's nor the load's. */
export class CrowdOfWaiters {
  private readonly statuses: string[] = [];

  private constructor(private readonly child: ChildProcessWithoutNullStreams) {}

  /** Resolves when every wait has been asked for. @param file to hand the list over in */
  static async start(url: string, bundles: readonly Bundle[], seconds: number, file: string): Promise<CrowdOfWaiters> {
    const waits = bundles.map(({ pendingId, agentToken }) => ({
      path: `/api/v1/clarification/${pendingId}/wait?timeout=${seconds}`,
      token: agentToken,
    }));
    await writeFile(file, JSON.stringify(waits));
    // Each is a file descriptor here, too.
    const command = 'ulimit -n $(ulimit -Hn) 2>/dev/null; exec "$0" "$@"';
    const child = keep(
      spawn('/bin/sh', ['-c', command, process.execPath, '--import', LOADER, SCRIPT, new URL(url).port, file]),
    );
    let complaints = '';
    child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
    const crowd = new CrowdOfWaiters(child);
    await new Promise<void>((resolve, reject) => {
      child.once('exit', () => reject(new BenchError(`the waiting agents ended: ${complaints.trim().slice(-500)}`)));
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line === 'asked') resolve();
        else crowd.statuses.push(line);
      });
    });
    return crowd;
  }

  /** The statuses of those whose wait has ended. */
  get ended(): readonly string[] {
    return this.statuses;
  }

  stop(): Promise<void> {
    return kill(this.child);
  }
}
