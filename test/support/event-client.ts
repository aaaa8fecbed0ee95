import { request, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { Json } from './callers.js';
import { until } from './until.js';

/** One event of a stream, as the wire had it. */
export interface ServerEvent {
  /** The id in force, which may have come before the event. */
  readonly id: string;
  readonly type: string;
  readonly data: Json;
}

export interface EventClientOptions {
  readonly token?: string;
  readonly lastEventId?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default `/api/v1/events`. */
  readonly path?: string;
}

/** Reads a stream of Server-Sent Events, on a connection of its own. */
export class EventClient {
  readonly events: ServerEvent[] = [];
  readonly comments: string[] = [];
  /** What a browser would send when it connects again. */
  lastEventId = '';
  /** Undefined while the stream goes on: `whole` when the server ended it, `cut` when its connection was lost. */
  ended: 'whole' | 'cut' | undefined;
  /** A refusal: everything that is not a stream. */
  body = '';
  private rest = '';

  private constructor(
    private readonly sent: ClientRequest,
    private readonly response: IncomingMessage,
  ) {
    response.setEncoding('utf8');
    response.on('data', (text: string) => (this.isStream ? this.read(text) : (this.body += text)));
    response.on('error', () => undefined);
    response.on('close', () => (this.ended = response.complete ? 'whole' : 'cut'));
  }

  /** Resolves with the head of the answer, whatever its status. */
  static open(url: string, options: EventClientOptions = {}): Promise<EventClient> {
    const headers = {
      accept: 'text/event-stream',
      ...(options.token !== undefined && { authorization: `Bearer ${options.token}` }),
      ...(options.lastEventId !== undefined && { 'last-event-id': options.lastEventId }),
      ...options.headers,
    };
    return new Promise((resolve, reject) => {
      const sent = request(`${url}${options.path ?? '/api/v1/events'}`, { headers, agent: false });
      sent.on('response', (response) => resolve(new EventClient(sent, response)));
      sent.on('error', reject);
      sent.end();
    });
  }

  get status(): number {
    return this.response.statusCode ?? 0;
  }

  get headers(): IncomingHttpHeaders {
    return this.response.headers;
  }

  get isStream(): boolean {
    return this.headers['content-type']?.startsWith('text/event-stream') === true;
  }

  /** The first event of the type, once it is there; `where` are members that its data has. */
  async event(type: string, where: Readonly<Record<string, unknown>> = {}): Promise<ServerEvent> {
    const found = (): ServerEvent | undefined =>
      this.events.find(
        (event) => event.type === type && Object.entries(where).every(([name, value]) => event.data[name] === value),
      );
    await until(() => found() !== undefined);
    return found() as ServerEvent;
  }

  /** The types in the order in which they came. */
  get types(): string[] {
    return this.events.map(({ type }) => type);
  }

  /** Waits until the server ends the stream, or answers in whole. */
  async end(): Promise<'whole' | 'cut'> {
    await until(() => this.ended !== undefined);
    return this.ended as 'whole' | 'cut';
  }

  async close(): Promise<void> {
    this.sent.destroy();
    await this.end();
  }

  private read(text: string): void {
    const blocks = (this.rest + text).split('\n\n');
    this.rest = blocks.pop() ?? '';
    for (const block of blocks) this.take(block.split('\n'));
  }

  private take(lines: readonly string[]): void {
    const field = (name: string): string[] =>
      lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ''));
    this.comments.push(...field(''));
    this.lastEventId = field('id').at(-1) ?? this.lastEventId;
    const data = field('data').join('\n');
    // As a browser does: without data nothing is dispatched, but an id counts.
    if (data === '') return;
    this.events.push({
      id: this.lastEventId,
      type: field('event').at(-1) ?? 'message',
      data: JSON.parse(data),
    });
  }
}
