import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { readEnvironment } from '../config/env.js';

const START_TIMEOUT_MS = 30_000;
/** The demo runs the same whatever the operator's own .env says. */
const NO_FILE = '';
const SOURCE = join(import.meta.dirname, '..');

/** How this process runs its own program, compiled or not, is how it runs the others. */
function program(...path: string[]): string[] {
  return [...process.execArgv, `${join(SOURCE, ...path)}${extname(import.meta.filename)}`];
}

/** A server of the demo's own: a real process on a free port with a temporary database. */
export class DemoServer {
  private constructor(
    readonly url: string,
    private child: ChildProcess,
    private readonly folder: string,
    private readonly environment: NodeJS.ProcessEnv,
  ) {}

  static async start(): Promise<DemoServer> {
    const folder = await mkdtemp(join(tmpdir(), 'clarion-demo-'));
    const environment = {
      ...readEnvironment(NO_FILE),
      DATABASE_URL: `sqlite:${join(folder, 'demo.db')}`,
      HOST: '127.0.0.1',
      PORT: '0',
      AUTH_MODE: 'enforced',
      LOG_LEVEL: 'error',
      RATE_LIMIT_PER_MINUTE: '0',
      // The agent that is called is in this process.
      WEBHOOK_ALLOW_PRIVATE: 'true',
    };
    const child = run(folder, environment);
    return new DemoServer(await urlOf(child), child, folder, environment);
  }

  /** kill -9. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
  }

  /** Another process on the same database, at the same address. */
  async restart(): Promise<void> {
    this.child = run(this.folder, { ...this.environment, PORT: new URL(this.url).port });
    await urlOf(this.child);
  }

  /** Runs the operator's command line on the server's database and gives what it prints. */
  async cli(...args: string[]): Promise<string> {
    const child = spawn(process.execPath, [...program('cli', 'main'), ...args], {
      cwd: this.folder,
      env: this.environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [status] = (await once(child, 'close')) as [number | null];
    if (status !== 0) throw new Error(`the command line ended with ${status}`);
    return output.trim();
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill('SIGTERM');
      await once(this.child, 'exit');
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}

function run(folder: string, environment: NodeJS.ProcessEnv): ChildProcess {
  return spawn(process.execPath, program('main'), {
    cwd: folder,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** The address in the one line that a server prints when it listens. */
async function urlOf(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('the server has no output');
  const lines = createInterface({ input: child.stdout });
  const started = new Promise<string>((resolve, reject) => {
    lines.on('line', (line) => {
      const url = /http:\/\/\S+/.exec(line)?.[0];
      if (url !== undefined) resolve(url.replace(/[,;]$/, ''));
    });
    child.once('exit', (status) => reject(new Error(`the server ended with ${status} before it listened`)));
  });
  const timeout = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS);
  return started.finally(() => clearTimeout(timeout));
}
