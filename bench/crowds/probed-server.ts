import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { keep } from '../lib/children.js';

export interface Memory {
  /** What JavaScript holds, buffers included, after a garbage collection. */
  readonly heapBytes: number;
  readonly rssBytes: number;
}

export interface Measurement extends Memory {
  /** How much later than due the event loop came to a timer. */
  readonly loop: { readonly p50Ms: number; readonly p99Ms: number; readonly maxMs: number };
  readonly cpuMs: number;
}

type Asks = { begin: Memory; memory: Memory; end: Measurement };

const MAIN = resolve(import.meta.dirname, '../../dist/src/main.js');
const PROBE = pathToFileURL(resolve(import.meta.dirname, 'server-probe.js')).href;
const STOP_MS = 60_000;
/** Enough of the log to tell why a server died. */
const LOG_TAIL = 4_000;

/** The product as shipped in a process of its own, and what it costs. */
export class ProbedServer {
  private nextId = 0;
  private readonly asked = new Map<number, (answer: never) => void>();

  private constructor(
    private readonly child: ChildProcess,
    readonly url: string,
    private readonly output: { text: string },
  ) {
    child.on('message', (message) => {
      const { id, answer } = message as { id: number; answer: never };
      this.asked.get(id)?.(answer);
      this.asked.delete(id);
    });
  }

  /**
   * @param nodeOptions beside the probe's own, e.g. `--cpu-prof`
   * @throws when it does not come up
   */
  static async start(
    folder: string,
    env: Readonly<Record<string, string>>,
    nodeOptions: readonly string[] = [],
  ): Promise<ProbedServer> {
    if (!existsSync(MAIN)) throw new Error('the product is not built; run npm run build');
    // The shell raises the limit of open files as far as this user may: who waits is a connection.
    const command = 'ulimit -n $(ulimit -Hn) 2>/dev/null; exec "$0" "$@"';
    const args = ['--expose-gc', '--import', PROBE, ...nodeOptions, MAIN];
    const child = keep(
      spawn('/bin/sh', ['-c', command, process.execPath, ...args], {
        cwd: folder,
        env: { PATH: process.env['PATH'], PORT: '0', LOG_LEVEL: 'error', ...env },
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      }),
    );
    const output = { text: '' };
    const url = await new Promise<string>((found, failed) => {
      const read = (chunk: Buffer): void => {
        output.text = (output.text + chunk.toString()).slice(-LOG_TAIL);
        const [address] = /http:\/\/\S+?(?=,)/.exec(output.text) ?? [];
        if (address !== undefined) found(address);
      };
      child.stdout?.on('data', read);
      child.stderr?.on('data', read);
      child.once('exit', (code) => failed(new Error(`the server ended (${code}): ${output.text.trim()}`)));
    });
    return new ProbedServer(child, url, output);
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** The end of what it has written. */
  get log(): string {
    return this.output.text;
  }

  /** @throws when the server has died */
  ask<K extends keyof Asks>(ask: K): Promise<Asks[K]> {
    const id = this.nextId++;
    return new Promise<Asks[K]>((resolveAnswer, reject) => {
      const died = (): void => reject(new Error(`the server died: ${this.log.trim()}`));
      if (!this.isRunning) return died();
      this.child.once('exit', died);
      this.asked.set(id, (answer) => {
        this.child.off('exit', died);
        resolveAnswer(answer);
      });
      this.child.send({ id, ask });
    });
  }

  /** @returns what was wrong with how it ended */
  async stop(): Promise<string | undefined> {
    if (!this.isRunning) return `the server had ended: ${this.log.trim()}`;
    const ended = once(this.child, 'exit');
    const guillotine = setTimeout(() => this.child.kill('SIGKILL'), STOP_MS);
    this.child.kill('SIGTERM');
    const [code, signal] = (await ended) as [number | null, string | null];
    clearTimeout(guillotine);
    return code === 0 ? undefined : `the server ended with ${code ?? signal}: ${this.log.trim()}`;
  }
}
