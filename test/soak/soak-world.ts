import { Counts } from './counts.js';
import type { Random } from './random.js';
import type { Reply, SoakClient } from './soak-client.js';

export interface SoakSession {
  readonly id: string;
  readonly mode: 'pull' | 'webhook';
  /** Bundles that may still be open, newest last. */
  readonly asked: string[];
}

/** What somebody was told of a bundle, in the order in which it was told. */
export interface Told {
  readonly by: 'responder' | 'agent';
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const SESSIONS = 16;
const OPTIONS = ['left', 'right'];

/** What is done at random, and how often beside the others. */
const WEIGHTS = {
  ask: 24,
  answer: 22,
  reject: 9,
  wait: 16,
  'read mailbox': 14,
  message: 9,
  'new turn': 9,
  'complete turn': 9,
  cancel: 9,
  'end session': 8,
} as const;

export type Operation = keyof typeof WEIGHTS;
export const OPERATIONS = [...(Object.keys(WEIGHTS) as Operation[]), 'disconnect'];

/** Everybody who uses the service, and what each of them was told. */
export class SoakWorld {
  readonly counts = new Counts(OPERATIONS);
  readonly told = new Map<string, Told[]>();
  readonly home = new Map<string, SoakSession>();
  /** `client_message_id`s that were admitted. */
  readonly admitted = new Map<string, string>();
  /** Replies that nobody should get. */
  readonly problems: string[] = [];
  private sessions: SoakSession[] = [];
  private readonly waits = new Set<Promise<void>>();
  private messages = 0;

  constructor(
    private readonly client: SoakClient,
    private readonly random: Random,
    private readonly webhook: { readonly url: string; readonly secret: string },
  ) {}

  async settle(): Promise<void> {
    for (let index = 0; index < SESSIONS; index += 1) this.sessions.push(await this.newSession());
  }

  /** One step of one user. */
  async act(): Promise<void> {
    const operation = this.random.weighted(WEIGHTS);
    const session = this.random.pick(this.sessions);
    if (await this.perform(operation, session)) this.counts.add(operation);
  }

  /** Ends the waits that go on. */
  async finish(): Promise<void> {
    await Promise.all(this.waits);
  }

  /** Also those that have ended. */
  readonly everySession: SoakSession[] = [];

  /** @returns whether there was something to do */
  private async perform(operation: Operation, session: SoakSession): Promise<boolean> {
    const of = `/task-sessions/${session.id}`;
    switch (operation) {
      case 'ask':
        return this.ask(session);
      case 'answer':
      case 'reject': {
        const pendingId = this.anyBundle(session);
        if (pendingId === undefined) return false;
        await this.respond(pendingId, operation === 'reject');
        return true;
      }
      case 'wait': {
        const pendingId = this.anyBundle(session);
        if (pendingId !== undefined) this.wait(pendingId);
        return pendingId !== undefined;
      }
      case 'read mailbox':
        return this.readMailbox(of);
      case 'message': {
        this.messages += 1;
        const id = `m-${this.messages}`;
        const body = { content: `Message ${id}`, client_message_id: id };
        const { status } = await this.expect('POST', `${of}/messages`, body, 200, 201, 409);
        if (status !== 409) this.admitted.set(id, session.id);
        return true;
      }
      case 'new turn':
        await this.expect('POST', `${of}/turns`, this.random.chance(0.7) ? { prompt: 'Go on.' } : {}, 201, 409);
        return true;
      case 'complete turn': {
        const turns = await this.expect('GET', `${of}/turns`, undefined, 200);
        const last = (turns.body['turns'] as { id: string }[] | undefined)?.at(-1);
        if (last === undefined) return false;
        await this.expect('POST', `${of}/turns/${last.id}/complete`, {}, 200);
        return true;
      }
      case 'cancel': {
        const pendingId = this.anyBundle(session);
        if (pendingId === undefined) return false;
        await this.expect('POST', `/clarification/${pendingId}/cancel`, {}, 200, 409);
        return true;
      }
      case 'end session': {
        const state = this.random.pick(['completed', 'failed', 'cancelled']);
        await this.expect('PATCH', of, { state }, 200, 409);
        this.sessions = [...this.sessions.filter((each) => each !== session), await this.newSession()];
        return true;
      }
    }
  }

  private async newSession(): Promise<SoakSession> {
    const task = await this.client.make('POST', '/tasks', { title: 'Soaked' }, 201);
    const taskId = String(task.body['id']);
    const mode = this.random.chance(0.7) ? 'webhook' : 'pull';
    const resume = mode === 'pull' ? { mode } : { mode, ...this.webhook };
    const session = await this.client.make('POST', `/tasks/${taskId}/sessions`, { resume }, 201);
    const made: SoakSession = { id: String(session.body['id']), mode, asked: [] };
    this.everySession.push(made);
    return made;
  }

  private async ask(session: SoakSession): Promise<boolean> {
    const count = 1 + this.random.below(2);
    const questions = Array.from({ length: count }, (_, index) => ({
      prompt: `Which, ${this.random.next()}?`,
      id: `q${index + 1}`,
      options: OPTIONS.map((label) => ({ option_id: label, label })),
    }));
    const reply = await this.expect('POST', '/clarification/request', { session_id: session.id, questions }, 200, 409);
    if (reply.status !== 200) return true;
    const pendingId = String(reply.body['pending_id']);
    session.asked.push(pendingId);
    this.home.set(pendingId, session);
    this.sizes.set(pendingId, count);
    // An agent usually waits for what it has asked.
    if (this.random.chance(0.4)) this.wait(pendingId);
    return true;
  }

  private readonly sizes = new Map<string, number>();

  /** Mostly one of the newest, sometimes one that has long been settled. */
  private anyBundle({ asked }: SoakSession): string | undefined {
    if (asked.length === 0) return undefined;
    return this.random.chance(0.85)
      ? asked[Math.max(0, asked.length - 1 - this.random.below(2))]
      : this.random.pick(asked);
  }

  async respond(pendingId: string, isRejection: boolean): Promise<Reply> {
    const answers = Array.from({ length: this.sizes.get(pendingId) ?? 1 }, (_, index) => ({
      question_id: `q${index + 1}`,
      selected_options: [this.random.pick(OPTIONS)],
      custom_text: `${this.random.below(1_000_000)}`,
    }));
    const outcome = isRejection ? { rejected: true } : { answers };
    const reply = await this.expect('POST', `/clarification/${pendingId}/respond`, outcome, 200, 409, 500);
    this.tell(pendingId, { by: 'responder', ...reply });
    return reply;
  }

  /** An agent's wait, in the background; sometimes its connection is closed before it has an answer. */
  private wait(pendingId: string): void {
    const gone = new AbortController();
    const isLeaving = this.random.chance(0.5);
    const timer = isLeaving ? setTimeout(() => gone.abort(), this.random.below(300)) : undefined;
    const path = `/clarification/${pendingId}/wait?timeout=${1 + this.random.below(3)}`;
    const waiting = this.client.once('GET', path, undefined, gone.signal).then((reply) => {
      clearTimeout(timer);
      if (reply === undefined) {
        if (gone.signal.aborted) this.counts.add('disconnect');
        return;
      }
      if (reply.status === 200) this.tell(pendingId, { by: 'agent', ...reply });
      else if (![409, 503, 504].includes(reply.status)) this.problem('GET', path, reply);
    });
    this.waits.add(waiting);
    void waiting.finally(() => this.waits.delete(waiting));
  }

  private async readMailbox(of: string): Promise<boolean> {
    const reply = await this.expect('GET', `${of}/mailbox`, undefined, 200, 204);
    if (reply.status === 204) return true;
    const turn = reply.body['turn'] as { id: string };
    if (this.random.chance(0.7)) await this.expect('POST', `${of}/mailbox/${turn.id}/ack`, {}, 204);
    if (this.random.chance(0.5)) await this.expect('POST', `${of}/turns/${turn.id}/complete`, {}, 200);
    return true;
  }

  private tell(pendingId: string, told: Told): void {
    this.told.set(pendingId, [...(this.told.get(pendingId) ?? []), told]);
  }

  private async expect(method: string, path: string, body: unknown, ...statuses: number[]): Promise<Reply> {
    const reply = await this.client.request(method, path, body);
    if (!statuses.includes(reply.status)) this.problem(method, path, reply);
    return reply;
  }

  private problem(method: string, path: string, { status, body }: Reply): void {
    this.problems.push(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
  }
}
