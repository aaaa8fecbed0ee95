import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Deadline } from '../../../src/common/deadline.js';
import type { Tx, UnitOfWork } from '../../../src/persistence/unit-of-work.js';
import type { ResumePort } from '../../../src/tasks/resume/resume.port.js';

/**
 * The points of one server at which something becomes durable, leaves the process or is about to: the order of these is
 * all that a dying process can show to anybody. From the one at which it is to stop on, nothing crosses any more.
 */
export class Crossings {
  private readonly seen = new Map<string, number>();
  private isArmed = false;
  private hasStopped = false;
  private stopAt: string | undefined;
  private holdAt: string | undefined;
  private goOn: () => void = () => undefined;

  constructor(
    private readonly onCrossed: (name: string) => void,
    private readonly onStopped: (name: string) => void,
  ) {}

  /**
   * Counts from now on.
   * @param stopAt the crossing not to be left, e.g. `bundle.claim: before COMMIT`
   * @param holdAt the one not to be left until {@link letGo}, while others go on
   */
  arm(stopAt: string | undefined, holdAt?: string): void {
    this.isArmed = true;
    this.stopAt = stopAt;
    this.holdAt = holdAt;
  }

  letGo(): void {
    this.goOn();
  }

  /** @returns whether the caller may go on */
  pass(name: string): boolean {
    return this.number(name) !== undefined;
  }

  /** As {@link pass}, for those that can be kept waiting. */
  async cross(name: string): Promise<void> {
    const numbered = this.number(name);
    if (numbered === undefined) await new Promise<never>(() => undefined);
    if (numbered === this.holdAt) await new Promise<void>((resolve) => (this.goOn = resolve));
  }

  /** @returns undefined where it has stopped; the second of a name is `name #2` */
  private number(name: string): string | undefined {
    if (this.hasStopped) return undefined;
    if (!this.isArmed) return name;
    const count = (this.seen.get(name) ?? 0) + 1;
    this.seen.set(name, count);
    const numbered = count === 1 ? name : `${name} #${count}`;
    this.hasStopped = numbered === this.stopAt;
    (this.hasStopped ? this.onStopped : this.onCrossed)(numbered);
    return this.hasStopped ? undefined : numbered;
  }
}

/** Before BEGIN is sent, before COMMIT is sent, and when it has been acknowledged and nobody has heard. */
export function watchTransactions(unitOfWork: UnitOfWork, crossings: Crossings): void {
  const run = unitOfWork.run.bind(unitOfWork);
  unitOfWork.run = async <T>(name: string, deadline: Deadline, work: (tx: Tx) => Promise<T>): Promise<T> => {
    await crossings.cross(`${name}: before BEGIN`);
    const value = await run(name, deadline, async (tx) => {
      const done = await work(tx);
      await crossings.cross(`${name}: before COMMIT`);
      return done;
    });
    await crossings.cross(`${name}: after COMMIT`);
    return value;
  };
}

/** Before anything is sent to an agent, and when it is known here what became of it. */
export function watchCalls(port: ResumePort, crossings: Crossings): void {
  const call = port.call.bind(port);
  port.call = async (...args) => {
    await crossings.cross('call: before');
    const result = await call(...args);
    await crossings.cross('call: after');
    return result;
  };
}

const REPLIES: readonly (readonly [RegExp, string])[] = [
  [/\/clarification\/[^/]+\/respond$/, 'reply to respond'],
  [/\/clarification\/[^/]+\/wait(\?|$)/, 'reply to wait'],
  [/^\/mcp\/sessions\//, 'reply to ask'],
];

/** Before the bytes that carry a reply are written, and when the kernel has taken them. */
export function watchReplies(server: Server, crossings: Crossings): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const kind = REPLIES.find(([path]) => path.test(request.url ?? ''))?.[1];
    if (kind === undefined) return;
    const isStream = kind === 'reply to ask';
    const write = response.write.bind(response) as (...args: unknown[]) => boolean;
    const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse;
    response.write = ((...args: unknown[]) => {
      // Of a stream, the one message that is the result; comments and progress say nothing.
      if (!isStream || !textOf(args[0]).includes('"result"')) return write(...args);
      if (!crossings.pass(`${kind}: before`)) return false;
      return write(args[0], () => void crossings.pass(`${kind}: after`));
    }) as typeof response.write;
    response.end = ((...args: unknown[]) => {
      if (isStream) return end(...args);
      if (!crossings.pass(`${kind}: before`)) return response;
      response.once('finish', () => void crossings.pass(`${kind}: after`));
      return end(...args);
    }) as typeof response.end;
  });
}

function textOf(chunk: unknown): string {
  return chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : String(chunk);
}
