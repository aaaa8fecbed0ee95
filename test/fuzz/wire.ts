import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';

/** One request as it goes over the wire. */
export interface WireRequest {
  readonly method: string;
  /** With the query. Latin-1: each character is a byte. */
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body?: Buffer;
  /** The client goes away after so long, whatever comes. */
  readonly leavesAfterMs?: number;
  /** A stream that does not end by itself: closed by us once its first bytes are there. */
  readonly isOpenEnded?: boolean;
}

export type WireReply =
  | {
      readonly kind: 'reply';
      readonly status: number;
      readonly headers: Readonly<Record<string, string | string[] | undefined>>;
      readonly body: Buffer;
    }
  /** The connection ended without a whole reply. */
  | { readonly kind: 'dropped'; readonly why: string }
  /** Nothing, or not all of it, within the deadline. */
  | { readonly kind: 'hung' }
  | { readonly kind: 'left' };

/** What an open-ended stream may take for its first bytes, which need not come. */
const FIRST_BYTES_MS = 20;

/** Sends what other clients would not, over connections that are kept. */
export class Wire {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 64 });
  private readonly target: URL;

  /** @param deadlineMs after which no reply counts as none at all */
  constructor(
    readonly url: string,
    private readonly deadlineMs: number,
  ) {
    this.target = new URL(url);
  }

  async send(request: WireRequest): Promise<WireReply> {
    const first = await this.once(request);
    // A kept connection may be closed at the very moment at which it is used again; that is HTTP's fault.
    return first.kind === 'dropped' && first.wasKept ? this.once(request) : first;
  }

  close(): void {
    this.agent.destroy();
  }

  private once(request: WireRequest): Promise<WireReply & { readonly wasKept?: boolean }> {
    return new Promise((resolve) => {
      const { hostname, port } = this.target;
      const sent = httpRequest({
        agent: this.agent,
        hostname,
        port,
        method: request.method,
        path: request.path,
        headers: request.headers.flat(),
        setHost: false,
      });
      let isSettled = false;
      const settle = (reply: WireReply & { readonly wasKept?: boolean }, isOver: boolean): void => {
        if (isSettled) return;
        isSettled = true;
        for (const timer of timers) clearTimeout(timer);
        if (!isOver) sent.destroy();
        resolve(reply);
      };
      const timers = [setTimeout(() => settle({ kind: 'hung' }, false), this.deadlineMs)];
      if (request.leavesAfterMs !== undefined) {
        timers.push(setTimeout(() => settle({ kind: 'left' }, false), request.leavesAfterMs));
      }
      const drop = (why: string): void => settle({ kind: 'dropped', why, wasKept: sent.reusedSocket }, false);
      sent.on('error', (error: NodeJS.ErrnoException) => drop(error.code ?? error.message));
      sent.on('response', (response: IncomingMessage) => {
        const chunks: Buffer[] = [];
        const { statusCode: status = 0, headers } = response;
        const told = (isOver: boolean): void =>
          settle({ kind: 'reply', status, headers, body: Buffer.concat(chunks) }, isOver);
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          if (isStream) told(false);
        });
        response.on('end', () => told(true));
        response.on('error', () => drop('cut off within the reply'));
        response.on('close', () => drop('cut off within the reply'));
        const isStream = request.isOpenEnded === true && status === 200;
        if (isStream) timers.push(setTimeout(() => told(false), FIRST_BYTES_MS));
      });
      sent.end(request.body);
    });
  }
}

const LONGEST_COMMAND = 20_000;

/** The request as a command line, for whoever wants to see it again. */
export function commandOf(url: string, { method, path, headers, body }: WireRequest): string {
  const quoted = (text: string): string =>
    `$'${Buffer.from(text, 'latin1').reduce((all, byte) => all + byteOf(byte), '')}'`;
  const options = headers.map(([name, value]) => ` -H ${quoted(`${name}: ${value}`)}`).join('');
  const command = `curl --path-as-is -g -i -X ${method}${options}`;
  const target = quoted(`${url}${path}`);
  if (body === undefined) return shortened(`${command} ${target}`);
  return shortened(`echo ${body.toString('base64')} | base64 -d | ${command} --data-binary @- ${target}`);
}

function byteOf(byte: number): string {
  const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x27 && byte !== 0x5c;
  return isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`;
}

function shortened(command: string): string {
  return command.length <= LONGEST_COMMAND ? command : `${command.slice(0, LONGEST_COMMAND)}… (${command.length} long)`;
}
