import { startServerProcess, type ServerProcess } from '../process/server-process.js';

/** The server under test: a real process that is killed and started again on the same database. */
export class SoakedServer {
  kills = 0;
  private running: ServerProcess | undefined;
  private url: Promise<string> = Promise.reject(new Error('not started'));

  constructor(
    private readonly folder: string,
    private readonly env: Readonly<Record<string, string>>,
  ) {
    this.url.catch(() => undefined);
  }

  /** The address of the process that runs, or of the next one while none does. */
  address(): Promise<string> {
    return this.url;
  }

  async start(): Promise<void> {
    this.url = this.spawn();
    this.url.catch(() => undefined);
    await this.url;
  }

  /** Kills the process where it is, and starts the next one. */
  async killAndRestart(): Promise<void> {
    const { running } = this;
    if (running === undefined) throw new Error('no server runs');
    this.kills += 1;
    // From now on the address is the next one's.
    this.url = (async () => {
      running.child.kill('SIGKILL');
      await running.ended;
      return this.spawn();
    })();
    this.url.catch(() => undefined);
    await this.url;
  }

  /** @throws when the process does not end in order */
  async stop(): Promise<void> {
    const { running } = this;
    if (running === undefined) return;
    this.running = undefined;
    running.child.kill('SIGTERM');
    const { code, signal, stderr } = await running.ended;
    if (code !== 0) throw new Error(`the server ended with ${code ?? signal}: ${stderr.slice(-2000)}`);
  }

  destroy(): void {
    this.running?.child.kill('SIGKILL');
  }

  private async spawn(): Promise<string> {
    const started = startServerProcess(this.env, this.folder);
    this.running = started;
    const url = /http:\/\/\S+?(?=,)/.exec(await started.firstLine)?.[0];
    if (url === undefined) throw new Error('the server does not say where it listens');
    return url;
  }
}
