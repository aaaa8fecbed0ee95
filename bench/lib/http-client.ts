import { Agent, request, type IncomingHttpHeaders } from 'node:http';

/** JSON of whatever shape the caller goes on to check. */
export type Json = ReturnType<typeof JSON.parse>;

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** From before the request was written until the whole reply was there. */
  readonly milliseconds: number;
}

/** Marks the request whose statements are recorded (bench/children/probe.js). */
export const RECORD_HEADER = 'x-bench-record';

/** Sends requests to one server over connections that stay open: one, unless told otherwise. */
export class HttpClient {
  private readonly agent: Agent;
  private readonly host: string;
  private readonly port: string;
  private readonly headers: Readonly<Record<string, string>>;

  constructor(
    readonly url: string,
    token?: string,
    options: { readonly connections?: number; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    ({ hostname: this.host, port: this.port } = new URL(url));
    this.agent = new Agent({ keepAlive: true, maxSockets: options.connections ?? 1 });
    this.headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...options.headers,
    };
  }

  send(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const from = performance.now();
      const sent = request(
        {
          agent: this.agent,
          host: this.host,
          port: this.port,
          method,
          path,
          headers: {
            ...this.headers,
            ...headers,
            ...(text === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            const milliseconds = performance.now() - from;
            const reply = Buffer.concat(chunks).toString();
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text: reply, milliseconds });
          });
        },
      );
      sent.on('error', reject);
      sent.end(text);
    });
  }

  close(): void {
    this.agent.destroy();
  }
}
