import { BenchError } from './bench-error.js';
import { HttpClient, RECORD_HEADER, type Json, type Reply } from './http-client.js';
import type { ProbedProcess } from './probed-process.js';
import type { Recording } from './recording.js';
import { QUESTION, USER } from './seed.js';
import { idsOf, type Bundle, type BundleKind, type Stock } from './stock.js';

/** What is answered, and how. */
export interface AnswerKind {
  readonly name: 'rejection' | 'live answer' | 'detached answer';
  readonly stock: BundleKind;
  readonly isWaitedFor: boolean;
  readonly body: unknown;
  readonly status: 'answered' | 'rejected';
}

const ANSWER = { answers: [{ question_id: QUESTION.id, selected_options: ['sqlite'], custom_text: 'For one team.' }] };

export const REJECTION: AnswerKind = {
  name: 'rejection',
  stock: 'detached',
  isWaitedFor: false,
  body: { rejected: true, reject_reason: 'Decide it yourself.' },
  status: 'rejected',
};
export const LIVE_ANSWER: AnswerKind = {
  name: 'live answer',
  stock: 'live',
  isWaitedFor: true,
  body: ANSWER,
  status: 'answered',
};
export const DETACHED_ANSWER: AnswerKind = {
  name: 'detached answer',
  stock: 'detached',
  isWaitedFor: false,
  body: ANSWER,
  status: 'answered',
};
export const ANSWER_KINDS: readonly AnswerKind[] = [REJECTION, LIVE_ANSWER, DETACHED_ANSWER];

/** An agent's wait that goes on, on a connection of its own. */
export interface OpenWait {
  /** @throws BenchError unless the agent gets the answer */
  arrives(): Promise<Json>;
}

const WAIT_SECONDS = 600;

/** Makes answers of one kind on one server, product or bare, and checks each reply. */
export class Answerer {
  private readonly user: HttpClient;

  constructor(
    readonly server: { readonly url: string },
    readonly kind: AnswerKind,
  ) {
    this.user = new HttpClient(server.url, USER.token);
  }

  /** Begins the waits that this kind of answer is for. Resolves once all of them are known to the product. */
  async beginWaits(bundles: readonly Bundle[]): Promise<readonly (OpenWait | undefined)[]> {
    if (!this.kind.isWaitedFor) return bundles.map(() => undefined);
    const clients = bundles.map((bundle) => {
      const client = new HttpClient(this.server.url, bundle.agentToken);
      const reply = client.send('GET', `/api/v1/clarification/${bundle.pendingId}/wait?timeout=${WAIT_SECONDS}`);
      // Awaited when its answer has been given.
      reply.catch(() => undefined);
      return {
        arrives: async () => {
          const { status, text } = await reply;
          client.close();
          const json = status === 200 ? JSON.parse(text) : undefined;
          if (json?.pending_id !== bundle.pendingId || json.rejected !== (this.kind.status === 'rejected')) {
            throw new BenchError(`a waiting agent got ${status} ${text}`);
          }
          return json;
        },
      };
    });
    return clients;
  }

  /** @returns how long it took, in milliseconds. @throws BenchError unless the answer was the one that counts */
  async answer(bundle: Bundle, wait?: OpenWait): Promise<number> {
    const { milliseconds } = await this.respond(bundle);
    await wait?.arrives();
    return milliseconds;
  }

  async respond(bundle: Bundle, headers: Readonly<Record<string, string>> = {}): Promise<Reply & { json: Json }> {
    const path = `/api/v1/clarification/${bundle.pendingId}/respond`;
    const reply = await this.user.send('POST', path, this.kind.body, headers);
    const json = reply.status === 200 ? JSON.parse(reply.text) : undefined;
    const isRight =
      json?.claimed === true &&
      json.delivered === true &&
      json.status === this.kind.status &&
      json.response.pending_id === bundle.pendingId;
    if (!isRight) throw new BenchError(`${this.kind.name}: ${reply.status} ${reply.text.slice(0, 500)}`);
    return { ...reply, json };
  }

  close(): void {
    this.user.close();
  }
}

/** What the agents of these bundles wait for has been registered: their waits are counted by the server. */
export async function waitersOf(url: string): Promise<number> {
  const client = new HttpClient(url, USER.token);
  const { text } = await client.send('GET', '/metrics');
  client.close();
  return Number(/^clarification_active_waiters\{role="agent"\} (\d+)/m.exec(text)?.[1] ?? NaN);
}

/** Makes one answer on a server and returns everything that it sent to the database for it. */
export async function recordAnswer(
  server: ProbedProcess,
  answerer: Answerer,
  bundle: Bundle,
  wait?: OpenWait,
): Promise<Recording & { readonly reply: Json; readonly waited?: Json }> {
  let reply: Json;
  const from = Date.now();
  const statements = await server.record(async () => {
    reply = (await answerer.respond(bundle, { [RECORD_HEADER]: 'this' })).json;
  });
  const to = Date.now();
  const waited = await wait?.arrives();
  const recording = { statements, ids: idsOf(bundle), from, to, reply: withoutId(reply, bundle) };
  return waited === undefined ? recording : { ...recording, waited: withoutId(waited, bundle) };
}

function withoutId(reply: Json, { pendingId }: Bundle): Json {
  return JSON.parse(JSON.stringify(reply).replaceAll(pendingId, '{pending}'));
}

/** Checks in the rows that an answer is there and handed over. */
export async function assertAnswered(stock: Stock, kind: AnswerKind, bundle: Bundle): Promise<void> {
  const { status, isSettled } = await stock.statusOf(bundle);
  if (status !== kind.status || !isSettled) {
    throw new BenchError(`${kind.name}: the row says ${status}, ${isSettled ? '' : 'not '}handed over`);
  }
}
