import { Agent, request, type ClientRequest, type IncomingHttpHeaders } from 'node:http';

export interface Reply {
  /** 0 when the connection failed; then `body` says why. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
  readonly ms: number;
}

export interface Call {
  readonly token?: string | undefined;
  readonly body?: unknown;
  /** A reply that takes longer counts as hung. */
  readonly patienceMs?: number;
  /** Told of the request, e.g. to cut it. */
  readonly onRequest?: (sent: ClientRequest) => void;
}

const PATIENCE_MS = 120_000;

/** A client that makes as many connections as it has calls under way, and keeps them. */
export class RestLoad {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: 10_000 });

  constructor(private readonly url: string) {}

  get(path: string, call: Call = {}): Promise<Reply> {
    return this.send('GET', path, call);
  }

  post(path: string, body: unknown, call: Call = {}): Promise<Reply> {
    return this.send('POST', path, { ...call, body });
  }

  close(): void {
    this.agent.destroy();
  }

  private send(method: string, path: string, call: Call): Promise<Reply> {
    const startedAt = performance.now();
    const payload = call.body === undefined ? undefined : JSON.stringify(call.body);
    return new Promise((resolve) => {
      const end = (status: number, headers: IncomingHttpHeaders, body: Record<string, unknown>): void => {
        clearTimeout(timer);
        resolve({ status, headers, body, ms: performance.now() - startedAt });
      };
      const sent = request(`${this.url}${path}`, {
        method,
        agent: this.agent,
        headers: {
          ...(call.token !== undefined && { authorization: `Bearer ${call.token}` }),
          ...(payload !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(payload),
          }),
        },
      });
      const timer = setTimeout(() => sent.destroy(new Error('no reply in time')), call.patienceMs ?? PATIENCE_MS);
      sent.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('error', (error) => end(0, {}, { error: error.message }));
        response.on('end', () => end(response.statusCode ?? 0, response.headers, parsed(text)));
      });
      sent.on('error', (error: NodeJS.ErrnoException) => end(0, {}, { error: error.code ?? error.message }));
      call.onRequest?.(sent);
      sent.end(payload);
    });
  }
}

function parsed(text: string): Record<string, unknown> {
  if (!text.startsWith('{')) return text === '' ? {} : { text };
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { text };
  }
}
