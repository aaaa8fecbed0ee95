import { startChild, type Child } from '../support/child.js';

/** Far above what any way to a crossing takes. */
const STOP_MS = 60_000;

interface Known {
  opened?: string;
  failed?: string;
  stopped?: string;
  isArmed: boolean;
  readonly crossed: string[];
}

type Said = { readonly id: string } & {
  readonly [what in 'opened' | 'failed' | 'crossed' | 'stopped']?: string;
} & { readonly armed?: true };

/** A real process with real servers in it, each on a database of its own; see `children/crash-server.ts`. */
export class CrashServers {
  private readonly known = new Map<string, Known>();
  private hasEnded = false;
  private readonly waiting = new Set<() => void>();

  /** @param how `die`: the process kills itself where one of its servers is to stop */
  constructor(how?: 'die') {
    this.child = startChild('crash-server.ts', how === undefined ? [] : [how]);
    void this.listen();
  }

  private readonly child: Child;

  /** Starts a server. @param stopAt counts from the start on and stops there; '' stops nowhere */
  open(id: string, env: Readonly<Record<string, string>>, stopAt?: string): void {
    this.known.set(id, { crossed: [], isArmed: stopAt !== undefined });
    this.tell({ open: id, env, ...(stopAt !== undefined && { stopAt }) });
  }

  /** Its address, once it listens. */
  async opened(id: string): Promise<string> {
    const server = this.of(id);
    await this.until(() => server.opened !== undefined || server.failed !== undefined || this.hasEnded);
    if (server.opened === undefined) throw new Error(`the server did not start: ${server.failed ?? 'it ended'}`);
    return server.opened;
  }

  /** From now on the server counts its crossings, and stops at this one; what comes to `holdAt` waits there. */
  async arm(id: string, stopAt: string, holdAt?: string): Promise<void> {
    const server = this.of(id);
    this.tell({ arm: id, stopAt, holdAt });
    await this.until(() => server.isArmed || this.hasEnded);
  }

  /** Resolves when the server has come to the crossing where it stops. */
  async stopped(id: string): Promise<string> {
    const server = this.of(id);
    let isLate = false;
    const bound = setTimeout(() => {
      isLate = true;
      this.wake();
    }, STOP_MS);
    await this.until(() => isLate || server.stopped !== undefined || server.failed !== undefined || this.hasEnded);
    clearTimeout(bound);
    if (server.stopped === undefined) {
      throw new Error(`it did not stop: ${server.failed ?? ''} after ${server.crossed.join(', ')}`);
    }
    return server.stopped;
  }

  letGo(id: string): void {
    this.tell({ letGo: id });
  }

  /** Until it has come to a crossing and gone beyond, or waits there; never where it ends before. */
  async passed(id: string, crossing: string): Promise<void> {
    await this.until(() => this.of(id).crossed.includes(crossing));
  }

  /** What it has crossed since it was armed. */
  crossed(id: string): readonly string[] {
    return this.of(id).crossed;
  }

  async kill(): Promise<void> {
    await this.child.kill('SIGKILL');
  }

  private of(id: string): Known {
    const server = this.known.get(id);
    if (server === undefined) throw new Error(`there is no server ${id}`);
    return server;
  }

  /** Without a bound of its own: how long a start takes is for the machine to say, and for the test's time limit. */
  private async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.waiting.add(resolve));
  }

  private wake(): void {
    for (const resolve of this.waiting) resolve();
    this.waiting.clear();
  }

  private tell(message: Record<string, unknown>): void {
    this.child.tell(JSON.stringify(message));
  }

  private async listen(): Promise<void> {
    try {
      for (;;) this.hear(await this.child.nextLine());
    } catch {
      this.hasEnded = true;
      this.wake();
    }
  }

  private hear(line: string): void {
    const { id, opened, failed, crossed, stopped, armed } = JSON.parse(line) as Partial<Said>;
    const server = id === undefined ? undefined : this.known.get(id);
    if (server === undefined) return;
    if (opened !== undefined) server.opened = opened;
    if (failed !== undefined) server.failed = failed;
    if (stopped !== undefined) server.stopped = stopped;
    if (crossed !== undefined) server.crossed.push(crossed);
    if (armed) server.isArmed = true;
    this.wake();
  }
}
