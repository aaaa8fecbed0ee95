import { setTimeout as pause } from 'node:timers/promises';
import type { SoakedServer } from './soaked-server.js';

export interface Reply {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const ATTEMPTS = 200;
const PAUSE_MS = 50;

/**
 * A client as one should be: when its request is lost on the way, or the server has no time for it, it sends the same
 * one again, to whichever process runs by then.
 */
export class SoakClient {
  constructor(private readonly server: SoakedServer) {}

  /** @returns undefined when the connection was lost, or `signal` aborted */
  async once(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Reply | undefined> {
    const url = await this.server.address();
    try {
      const response = await fetch(`${url}/api/v1${path}`, {
        method,
        ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
        signal: AbortSignal.any([AbortSignal.timeout(40_000), ...(signal === undefined ? [] : [signal])]),
      });
      const text = await response.text();
      return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) };
    } catch {
      return undefined;
    }
  }

  /** Until there is a reply that is neither 5xx nor lost; a 500 that says `retryable: false` is one. */
  async request(method: string, path: string, body?: unknown): Promise<Reply> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const reply = await this.once(method, path, body);
      if (reply !== undefined && (reply.status < 500 || reply.body['retryable'] === false)) return reply;
      await pause(PAUSE_MS);
    }
    throw new Error(`${method} ${path} was not answered in ${ATTEMPTS} attempts`);
  }

  /** @throws unless the reply has one of the statuses */
  async make(method: string, path: string, body: unknown, ...statuses: number[]): Promise<Reply> {
    const reply = await this.request(method, path, body);
    if (!statuses.includes(reply.status)) {
      throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
    }
    return reply;
  }
}
