import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FrontReply {
  readonly status: number;
  readonly body: string;
}

/** What is done to the reply to a request. */
export type Fault = (
  reply: FrontReply,
  seen: { readonly texts: ReadonlySet<string>; readonly sent: string },
) => FrontReply | 'silence' | 'cut';

/** Passes everything on to a server, and spoils its replies on one route: a server with a fault, as far as one can see. */
export class FaultyFront {
  /** Canaries that went past. */
  private readonly texts = new Set<string>();

  private constructor(
    private readonly behind: URL,
    private readonly isFaulty: (request: IncomingMessage) => boolean,
    private readonly fault: Fault,
    private readonly server: Server,
  ) {
    server.on('request', (request: IncomingMessage, reply: ServerResponse) => void this.pass(request, reply));
  }

  static async start(
    behind: string,
    isFaulty: (request: IncomingMessage) => boolean,
    fault: Fault,
  ): Promise<FaultyFront> {
    const server = createServer({ maxHeaderSize: 65_536 });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new FaultyFront(new URL(behind), isFaulty, fault, server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async pass(request: IncomingMessage, reply: ServerResponse): Promise<void> {
    const sent = await bytesOf(request);
    for (const [text] of sent.toString().matchAll(/canary-\w+/g)) this.texts.add(text);
    const { 'transfer-encoding': _chunked, ...headers } = request.headers;
    const onward = httpRequest({
      // A connection of its own: one that is used again may have been closed behind the reply to what could not be read.
      agent: false,
      hostname: this.behind.hostname,
      port: this.behind.port,
      method: request.method,
      path: request.url,
      headers: { ...headers, ...(sent.length > 0 && { 'content-length': sent.length }) },
    });
    onward.on('error', () => reply.destroy());
    onward.on('response', (response) => void this.answer(request, response, reply, sent.toString()));
    onward.end(sent);
  }

  private async answer(request: IncomingMessage, response: IncomingMessage, reply: ServerResponse, sent: string) {
    const body = (await bytesOf(response)).toString();
    const real = { status: response.statusCode ?? 0, body };
    const told = this.isFaulty(request) ? this.fault(real, { texts: this.texts, sent }) : real;
    if (told === 'silence') return;
    if (told === 'cut') return void request.socket.destroy();
    const { 'content-length': _length, 'transfer-encoding': _encoding, ...headers } = response.headers;
    reply.writeHead(told.status, headers).end(told.body);
  }
}

async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
