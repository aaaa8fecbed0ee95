import { createHash } from 'node:crypto';
import { request, type ClientRequest, type IncomingHttpHeaders } from 'node:http';

/** One event as a stream told it. */
export interface HeardEvent {
  readonly id: string;
  readonly type: string;
  readonly workspaceId: string | undefined;
  readonly sessionId: string | undefined;
}

/** Reads a stream of events; keeps only how many and a digest of their ids, so that a thousand cost little. */
export class EventLoad {
  status = 0;
  headers: IncomingHttpHeaders = {};
  heard = 0;
  resyncs = 0;
  lastId = '';
  closed = false;
  private rest = '';
  private readonly ids = createHash('sha256');

  private constructor(
    private readonly sent: ClientRequest,
    private readonly onEvent: ((event: HeardEvent) => void) | undefined,
  ) {}

  /** Resolves with the first byte of the stream, or with a refusal; status 0 when the connection failed. */
  static open(url: string, token?: string, onEvent?: (event: HeardEvent) => void): Promise<EventLoad> {
    const sent = request(`${url}/api/v1/events`, {
      agent: false,
      headers: { accept: 'text/event-stream', ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    });
    const load = new EventLoad(sent, onEvent);
    return new Promise((resolve) => {
      sent.on('response', (response) => {
        load.status = response.statusCode ?? 0;
        load.headers = response.headers;
        response.setEncoding('utf8').on('data', (text: string) => {
          if (load.status === 200) load.read(text);
          resolve(load);
        });
        response.on('error', () => undefined);
        response.on('close', () => {
          load.closed = true;
          resolve(load);
        });
      });
      sent.on('error', () => {
        load.closed = true;
        resolve(load);
      });
      sent.end();
    });
  }

  /** Of the ids heard until now, in their order. */
  digest(): string {
    return this.ids.copy().digest('hex');
  }

  close(): void {
    this.sent.destroy();
  }

  private read(text: string): void {
    const blocks = (this.rest + text).split('\n\n');
    this.rest = blocks.pop() ?? '';
    for (const block of blocks) this.take(block);
  }

  private take(block: string): void {
    const type = /^event: (.*)$/m.exec(block)?.[1];
    if (type === undefined) return;
    if (type === 'resync') {
      this.resyncs += 1;
      return;
    }
    const id = /^id: (.*)$/m.exec(block)?.[1] ?? '';
    this.heard += 1;
    this.lastId = id;
    this.ids.update(`${id}\n`);
    if (this.onEvent === undefined) return;
    const data = JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? '{}') as Record<string, string | undefined>;
    this.onEvent({ id, type, workspaceId: data['workspace_id'], sessionId: data['session_id'] });
  }
}

/** What {@link EventLoad.digest} gives for these ids. */
export function digestOf(ids: readonly string[]): string {
  const hash = createHash('sha256');
  for (const id of ids) hash.update(`${id}\n`);
  return hash.digest('hex');
}
