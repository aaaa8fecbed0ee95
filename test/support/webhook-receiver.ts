import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { until } from './until.js';

/** One request that has come in whole. */
export interface ReceivedCall {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Exactly the bytes that came, as UTF-8 text. */
  readonly body: string;
  /**
   * The body as JSON. Where the receiver has this secret, as it was when the call came in.
   *
   * @throws WebhookVerificationError when the library of receivers does not take the signature
   */
  verified(secret: string): unknown;
}

/** What the receiver does with one request. */
export type Reaction =
  /** Reads all, answers so. A 3xx needs its `location`. */
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** Reads all, answers nothing. */
  | 'hang'
  /** Reads all, then resets, or closes, the connection. */
  | 'reset'
  | 'close'
  /** Resets the connection when the headers are in. Only with a body beyond the sockets' buffers is it not sent whole. */
  | 'reset-before-body'
  /** Reads nothing after the headers, until {@link WebhookReceiver.dropUnread}. */
  | 'never-read'
  /** 200, and a body that never ends. */
  | 'slow-body'
  /** 200, sent in three pieces. */
  | 'pieces'
  /** 103, then 200. */
  | 'early-hints'
  /** 200, without having read the body. */
  | 'accept-unread'
  /** 101. */
  | 'upgrade'
  /** What is no HTTP at all. */
  | 'garbage';

export const ACCEPT: Reaction = { status: 204 };

/** An agent's webhook on loopback, which does as it is told and keeps what it gets. */
export class WebhookReceiver {
  readonly received: ReceivedCall[] = [];
  /** With it each call is verified as it comes in, as an agent does: a signature is good for minutes only. */
  secret: string | undefined;
  /** Requests whose headers have come in, read to their end or not. */
  begun = 0;
  private readonly next: Reaction[] = [];
  private always: Reaction = ACCEPT;
  private readonly sockets = new Set<Socket>();
  private readonly unread = new Set<Socket>();

  private constructor(
    private readonly server: ReturnType<typeof createServer>,
    private readonly scheme: 'http' | 'https',
  ) {
    server.on('request', (incoming, reply) => void this.handle(incoming, reply));
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
    });
  }

  static async start(tls?: { readonly key: string; readonly cert: string }): Promise<WebhookReceiver> {
    const server = tls === undefined ? createServer() : createTlsServer(tls);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new WebhookReceiver(server, tls === undefined ? 'http' : 'https');
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  url(path = '/hook', host = '127.0.0.1'): string {
    return `${this.scheme}://${host}:${this.port}${path}`;
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.sockets.size;
  }

  /** For the next requests, one each; those after them are accepted, or what {@link everyTime} says. */
  react(...reactions: readonly Reaction[]): void {
    this.next.push(...reactions);
  }

  /** What it got, and what it was told to do next. */
  forget(): void {
    this.received.length = 0;
    this.next.length = 0;
  }

  everyTime(reaction: Reaction): void {
    this.always = reaction;
  }

  /** Ends the connections that were left unread: a socket that is not read does not notice what has become of it. */
  dropUnread(): void {
    for (const socket of this.unread) socket.destroy();
    this.unread.clear();
  }

  /** Until so many requests have come in whole. */
  async until(count: number): Promise<void> {
    await until(() => this.received.length >= count);
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async handle(incoming: IncomingMessage, reply: ServerResponse): Promise<void> {
    this.begun += 1;
    const { socket } = incoming;
    const reaction = this.next.shift() ?? this.always;
    if (reaction === 'reset-before-body') return this.reset(socket);
    if (reaction === 'never-read' || reaction === 'accept-unread') {
      this.unread.add(socket.pause());
      if (reaction === 'accept-unread') socket.write('HTTP/1.1 200 OK\r\n\r\n');
      return;
    }
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
    } catch {
      return; // The caller gave up.
    }
    this.received.push(receivedCall(incoming, Buffer.concat(chunks).toString(), this.secret));
    if (typeof reaction === 'object') {
      reply.writeHead(reaction.status, reaction.headers).end(reaction.body);
      return;
    }
    switch (reaction) {
      case 'hang':
        return;
      case 'reset':
        return this.reset(socket);
      case 'close':
        return void socket.end();
      case 'slow-body':
        return void reply.writeHead(200).write('never ');
      case 'upgrade':
        return void socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
      case 'early-hints':
        return void reply.writeEarlyHints({ link: '</style.css>; rel=preload' }, () => reply.end());
      case 'garbage':
        return void socket.end('no HTTP\r\n\r\n');
      case 'pieces':
        for (const piece of ['HTTP/1.1 2', '00 OK\r\ncontent-le', 'ngth: 0\r\n\r\n']) {
          await new Promise((resolve) => socket.write(piece, resolve));
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
    }
  }

  /** A connection with TLS cannot be reset, the one below it can. */
  private reset({ remotePort }: Socket): void {
    for (const socket of this.sockets) if (socket.remotePort === remotePort) socket.resetAndDestroy();
  }
}

function receivedCall(
  { headers, method = '', url = '' }: IncomingMessage,
  body: string,
  known: string | undefined,
): ReceivedCall {
  const verify = (secret: string): unknown => new Webhook(secret).verify(body, headers as Record<string, string>);
  const atArrival = known === undefined ? undefined : outcomeOf(() => verify(known));
  return {
    id: String(headers['webhook-id']),
    headers,
    method,
    path: url,
    body,
    verified: (secret) => (atArrival !== undefined && secret === known ? atArrival() : verify(secret)),
  };
}

/** Does it now, and returns, or throws, what came of it as often as asked. */
function outcomeOf(act: () => unknown): () => unknown {
  try {
    const value = act();
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
