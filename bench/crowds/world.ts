import { setTimeout as pause } from 'node:timers/promises';
import type { Faults } from './faults.js';
import { RestLoad, type Call, type Reply } from './rest-load.js';

const API = '/api/v1';
/** So many requests are under way while a crowd is prepared. */
const PREPARING_AT_ONCE = 16;
const SETTLE_MS = 60_000;
const ATTEMPTS = 20;
/** Whoever asks for the metrics makes the server count, for which it waits for its database: a few times at once. */
export const WAITING_WHILE_COUNTED = 8;
const LEFT_AFTERWARDS = [
  ['clarification_active_waiters', 0],
  ['sse_clients', 0],
  ['database_waiting', WAITING_WHILE_COUNTED],
] as const;

export interface User {
  readonly workspaceId: string;
  readonly token: string;
}

export interface Session {
  readonly sessionId: string;
  readonly workspaceId: string;
  readonly agentToken: string;
}

export interface Asked extends Session {
  readonly pendingId: string;
}

export interface WorldCall extends Call {
  /** Default true: as a client should, who is told to come back. */
  readonly again?: boolean;
}

/** Who and what there is on the server under load. */
export class World {
  private readonly sessions: Session[] = [];
  private asks = 0;
  /** Replies with 503 after which the same was sent again. */
  refusedForNow = 0;

  constructor(
    readonly url: string,
    readonly users: readonly User[],
    readonly rest = new RestLoad(url),
  ) {}

  /** So many sessions, each with an agent; those there are already are used again. They belong to the users in turn. */
  async sessionsOf(count: number): Promise<readonly Session[]> {
    await inParallel(count - this.sessions.length, PREPARING_AT_ONCE, async () => {
      const { workspaceId } = this.users[this.sessions.length % this.users.length] ?? { workspaceId: '' };
      const task = await this.made('/tasks', { title: 'Part of a crowd', workspace_id: workspaceId });
      const session = await this.made(`/tasks/${String(task['id'])}/sessions`, {});
      this.sessions.push({
        sessionId: String(session['id']),
        workspaceId,
        agentToken: String(session['agent_token']),
      });
    });
    return this.sessions.slice(0, count);
  }

  /** One new bundle a session. */
  async asked(sessions: readonly Session[]): Promise<readonly Asked[]> {
    const asked: Asked[] = [];
    await inParallel(sessions.length, PREPARING_AT_ONCE, async (index) => {
      const session = sessions[index] as Session;
      const { body, status } = await this.ask(session);
      if (status !== 200) throw new Error(`preparing: asking gave ${status} ${JSON.stringify(body)}`);
      asked[index] = { ...session, pendingId: String(body['pending_id']) };
    });
    return asked;
  }

  /** Asks what nobody has asked before. */
  ask(session: Session, call: WorldCall = {}): Promise<Reply> {
    this.asks += 1;
    const body = { session_id: session.sessionId, questions: [question(`Question ${this.asks} of ${process.pid}?`)] };
    const sent: WorldCall = { token: session.agentToken, ...call };
    return this.send(sent, () => this.rest.post(`${API}/clarification/request`, body, sent));
  }

  /** @param choice which of the two options, or neither */
  respond(asked: Asked, choice: 1 | 2 | 'reject', call: WorldCall = {}): Promise<Reply> {
    const outcome =
      choice === 'reject'
        ? { rejected: true, reject_reason: 'not now' }
        : { answers: [{ question_id: 'q1', selected_options: [`q1_opt${choice}`] }] };
    return this.send(call, () => this.rest.post(`${API}/clarification/${asked.pendingId}/respond`, outcome, call));
  }

  wait(asked: Asked, seconds: number, call: WorldCall = {}): Promise<Reply> {
    const path = `${API}/clarification/${asked.pendingId}/wait?timeout=${seconds}`;
    const sent: WorldCall = { token: asked.agentToken, patienceMs: (seconds + 60) * 1000, ...call };
    return this.send(sent, () => this.rest.get(path, sent));
  }

  read(asked: Asked, call: WorldCall = {}): Promise<Reply> {
    return this.send(call, () => this.rest.get(`${API}/clarification/${asked.pendingId}`, call));
  }

  /** A sample of `/metrics`, all labels summed. */
  async metric(name: string): Promise<number> {
    const { body } = await this.rest.get('/metrics');
    const { text } = body;
    const lines = typeof text === 'string' ? text.split('\n') : [];
    const samples = lines.filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
    if (samples.length === 0) throw new Error(`/metrics has no ${name}`);
    return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  }

  /** Waits until the metric is at least, or at most, the value. @returns whether it came to be */
  async until(name: string, comparison: '>=' | '<=', value: number): Promise<boolean> {
    const giveUpAt = performance.now() + SETTLE_MS;
    while (performance.now() < giveUpAt) {
      const now = await this.metric(name);
      if (comparison === '>=' ? now >= value : now <= value) return true;
      await pause(100);
    }
    return false;
  }

  /** That nothing is left of a crowd which has gone, and that the server works as before. */
  async checkIsQuiet(faults: Faults): Promise<void> {
    for (const [name, most] of LEFT_AFTERWARDS) {
      if (!(await this.until(name, '<=', most)))
        faults.add(`${name} is ${await this.metric(name)} after everybody left`);
    }
    const [session] = await this.sessionsOf(1);
    const [asked] = await this.asked(session === undefined ? [] : [session]);
    if (asked === undefined) throw new Error('there is no session');
    const { status, body } = await this.respond(asked, 1);
    if (status !== 200 || body['claimed'] !== true || body['delivered'] !== true) {
      faults.add(`an ordinary answer afterwards gave ${status} ${JSON.stringify(body)}`);
    }
  }

  /** What was refused for now is sent again when it says, and counted. */
  private async send({ again = true }: WorldCall, send: () => Promise<Reply>): Promise<Reply> {
    const startedAt = performance.now();
    for (let attempt = 1; ; attempt += 1) {
      const reply = await send();
      if (reply.status !== 503 || !again || attempt === ATTEMPTS) {
        return { ...reply, ms: performance.now() - startedAt };
      }
      this.refusedForNow += 1;
      await pause(Number(reply.headers['retry-after'] ?? 1) * 1000);
    }
  }

  private async made(path: string, body: unknown): Promise<Readonly<Record<string, unknown>>> {
    const reply = await this.send({}, () => this.rest.post(`${API}${path}`, body));
    if (reply.status !== 201) throw new Error(`preparing: ${path} gave ${reply.status} ${JSON.stringify(reply.body)}`);
    return reply.body;
  }
}

/** Runs `act` for 0 … count - 1, so many at a time. */
export async function inParallel(count: number, width: number, act: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await act(next++);
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, worker));
}

function question(prompt: string) {
  return { title: 'Crowd', prompt, options: [{ label: 'Left' }, { label: 'Right' }] };
}
