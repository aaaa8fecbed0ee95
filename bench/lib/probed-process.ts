import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { BenchError } from './bench-error.js';
import { keep, kill } from './children.js';
import type { Statement } from './recording.js';

/** Bytes after a garbage collection. */
export interface Memory {
  readonly heapUsed: number;
  readonly external: number;
  readonly rss: number;
}

/** What has been set on the connections to the database, by role. */
export type Settings = Readonly<Partial<Record<'writer' | 'reader', Readonly<Record<string, string | number>>>>>;

const ROOT = join(import.meta.dirname, '../..');
const PROBE = pathToFileURL(join(import.meta.dirname, '../children/probe.js')).href;
// A first start on a large and old database migrates it.
const START_WITHIN_MS = 300_000;
let serial = 0;

/** A server in a process of its own, which can be asked about itself (bench/children/probe.js). */
export class ProbedProcess {
  private readonly questions = new Map<number, (reply: { value?: unknown; error?: string }) => void>();
  private nextId = 1;

  private constructor(
    readonly url: string,
    readonly child: ChildProcess,
    /** What it writes, its log included. */
    readonly output: string,
  ) {
    child.on('message', (reply: { id: number; value?: unknown; error?: string }) => {
      this.questions.get(reply.id)?.(reply);
      this.questions.delete(reply.id);
    });
    child.once('exit', () => {
      for (const tell of this.questions.values()) tell({ error: 'it has ended' });
    });
  }

  /**
   * Starts `script` in `folder`, where it also logs, and waits for the first line with an address.
   * @param nodeArgs for node, before the script, e.g. `--cpu-prof`
   */
  static async start(
    script: string,
    options: {
      readonly folder: string;
      readonly args?: readonly string[];
      readonly nodeArgs?: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
    },
  ): Promise<ProbedProcess> {
    const output = join(options.folder, `server-${(serial += 1)}.log`);
    const descriptor = openSync(output, 'a');
    // The shell raises the limit of open files as far as this user may: each waiting agent is a connection.
    const command = 'ulimit -n $(ulimit -Hn) 2>/dev/null; exec "$0" "$@"';
    const nodeArgs = ['--expose-gc', '--import', PROBE, ...(options.nodeArgs ?? [])];
    const child = keep(
      spawn('/bin/sh', ['-c', command, process.execPath, ...nodeArgs, join(ROOT, script), ...(options.args ?? [])], {
        cwd: options.folder,
        env: { PATH: process.env['PATH'] ?? '', ...options.env },
        stdio: ['ignore', descriptor, descriptor, 'ipc'],
      }),
    );
    closeSync(descriptor);
    const giveUpAt = performance.now() + START_WITHIN_MS;
    for (;;) {
      const said = readFileSync(output, 'utf8');
      const url = /listens on (http:\/\/[^\s,]+)/.exec(said)?.[1];
      if (url !== undefined) return new ProbedProcess(url, child, output);
      if (child.exitCode !== null || performance.now() > giveUpAt) {
        await kill(child);
        throw new BenchError(`${script} did not start: ${said.trim().split('\n').at(-1) ?? ''}`);
      }
      await pause(20);
    }
  }

  /** After garbage collections. */
  memory(): Promise<Memory> {
    return this.ask<Memory>('memory');
  }

  /** Processor time used so far, in milliseconds. */
  cpu(): Promise<number> {
    return this.ask<number>('cpu');
  }

  settings(): Promise<Settings> {
    return this.ask<Settings>('settings');
  }

  /** What is sent to the database from the arrival of the request with {@link RECORD_HEADER} to the end of its reply. */
  async record(request: () => Promise<void>): Promise<readonly Statement[]> {
    await this.ask('record');
    await request();
    return this.ask<readonly Statement[]>('recorded');
  }

  /** In order, so that a profile is written; killed when that takes too long. */
  async stop(): Promise<void> {
    const { child } = this;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    await Promise.race([gone, pause(20_000, undefined, { ref: false }).then(() => kill(child))]);
  }

  kill(): Promise<void> {
    return kill(this.child);
  }

  private ask<T>(ask: string): Promise<T> {
    const id = (this.nextId += 1);
    return new Promise<T>((resolve, reject) => {
      this.questions.set(id, ({ value, error }) => {
        if (error === undefined) resolve(value as T);
        else reject(new BenchError(`a server cannot tell its ${ask}: ${error}`));
      });
      this.child.send({ id, ask });
    });
  }
}
