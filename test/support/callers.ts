/** JSON of whatever shape the test goes on to expect. */
export type Json = ReturnType<typeof JSON.parse>;

/** One answer of the service as it came over the wire. */
export interface Heard {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON, undefined where it is none. */
  readonly json: Json;
}

/** A body to be sent as it is: what `JSON.stringify` would not write. */
export class RawBody {
  constructor(
    readonly bytes: string | Buffer,
    readonly type = 'application/json',
  ) {}
}

/** Speaks REST, with a token or without. */
export class RestCaller {
  constructor(
    readonly url: string,
    readonly token?: string,
  ) {}

  get(path: string): Promise<Heard> {
    return this.send('GET', path);
  }

  post(path: string, body?: unknown): Promise<Heard> {
    return this.send('POST', path, body);
  }

  /** @param path with or without `/api/v1` */
  async send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Heard> {
    const response = await fetch(
      `${this.url}${/^\/(api|mcp|health|metrics|docs)/.test(path) ? '' : '/api/v1'}${path}`,
      {
        method,
        headers: {
          ...authorization(this.token),
          ...(body === undefined ? {} : { 'content-type': body instanceof RawBody ? body.type : 'application/json' }),
        },
        ...(body === undefined
          ? {}
          : { body: body instanceof RawBody ? new Uint8Array(Buffer.from(body.bytes)) : JSON.stringify(body) }),
        ...(signal && { signal }),
      },
    );
    return heard(response);
  }

  /** As `send`, for arrangements: what a test builds on has to work. */
  async make(method: string, path: string, body?: unknown): Promise<Json> {
    const answer = await this.send(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.json;
  }
}

/** What a tool call gave. */
export interface ToolAnswer {
  readonly isError: boolean;
  /** The text content, which is JSON unless it is an error: `<code>: <sentence>`. */
  readonly text: string;
  /** The structured content. */
  readonly value: Json;
}

/** An MCP session that stays open, spoken to in plain JSON-RPC over HTTP, so that nothing hides what is on the wire. */
export class McpCaller {
  private nextId = 1;

  private constructor(
    readonly endpoint: string,
    readonly headers: Readonly<Record<string, string>>,
  ) {}

  static async open(url: string, path = '/mcp', token?: string): Promise<McpCaller> {
    const endpoint = `${url}${path}`;
    const headers = { ...authorization(token), 'content-type': 'application/json', accept: ACCEPT };
    const initialized = await fetch(endpoint, {
      method: 'POST',
      headers,
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: { protocolVersion: PROTOCOL, capabilities: {}, clientInfo: { name: 'test', version: '0' } },
      }),
    });
    const text = await initialized.text();
    const sessionId = initialized.headers.get('mcp-session-id');
    if (sessionId === null) throw new Error(`${path} did not initialize: ${initialized.status} ${text}`);
    return new McpCaller(endpoint, { ...headers, 'mcp-session-id': sessionId, 'mcp-protocol-version': PROTOCOL });
  }

  /** @param args JSON text when it is a `RawBody` */
  async call(tool: string, args: unknown = {}, signal?: AbortSignal): Promise<ToolAnswer> {
    const { result, error } = await this.request('tools/call', { name: tool, arguments: args }, signal);
    if (error !== undefined) throw new Error(`${tool}: protocol error ${JSON.stringify(error)}`);
    return { isError: result.isError === true, text: result.content[0].text, value: result.structuredContent };
  }

  async tools(): Promise<
    readonly { readonly name: string; readonly inputSchema: Json; readonly outputSchema: Json }[]
  > {
    return (await this.request('tools/list', {})).result.tools;
  }

  /** The bytes of one call: what the request pipeline itself answers, a refusal of the tool, or its result. */
  async post(body: string | Buffer, signal?: AbortSignal): Promise<Heard> {
    const init = { method: 'POST', headers: { ...this.headers }, body: new Uint8Array(Buffer.from(body)) };
    return heard(await fetch(this.endpoint, { ...init, ...(signal && { signal }) }));
  }

  private async request(method: string, params: Record<string, unknown>, signal?: AbortSignal): Promise<Json> {
    const message = callText(this.nextId++, method, params);
    const answer = await this.post(message, signal);
    const reply = replyIn(answer.text);
    if (reply === undefined) throw new Error(`${method}: ${answer.status} ${answer.text}`);
    return reply;
  }
}

/** The text of a JSON-RPC request; arguments given as a `RawBody` stand in it as they are. */
export function callText(id: number, method: string, params: Record<string, unknown>): string {
  const raw = params['arguments'];
  const text = JSON.stringify({
    jsonrpc: '2.0',
    id,
    method,
    params: raw instanceof RawBody ? { ...params, arguments: MARK } : params,
  });
  return raw instanceof RawBody ? text.replace(JSON.stringify(MARK), () => String(raw.bytes)) : text;
}

/** The JSON-RPC reply in an event stream. */
export function replyIn(stream: string): Json {
  const data = stream.split('\n').filter((line) => line.startsWith('data: {'));
  const last = data.at(-1);
  return last === undefined ? undefined : JSON.parse(last.slice('data: '.length));
}

const ACCEPT = 'application/json, text/event-stream';
const PROTOCOL = '2025-11-25';
const MARK = 'the arguments as they are';

function authorization(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

async function heard(response: Response): Promise<Heard> {
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: jsonOf(text) };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
