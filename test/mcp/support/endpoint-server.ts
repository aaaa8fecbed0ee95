import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Deadline } from '../../../src/common/deadline.js';
import { DomainError } from '../../../src/common/domain-error.js';
import { UNSCOPED } from '../../../src/identity/caller.js';
import type { Caller } from '../../../src/identity/caller.js';
import { McpEndpoint } from '../../../src/mcp/sdk/mcp-endpoint.js';
import type { McpEndpointSetup } from '../../../src/mcp/sdk/mcp-endpoint.js';
import type { Tool } from '../../../src/mcp/tools/tool.js';

const STATUS: Readonly<Record<string, number>> = {
  not_found: 404,
  too_many_requests: 429,
  temporarily_unavailable: 503,
};

export const ANA: Caller = { kind: 'user', userId: 'ana', userName: 'ana', tokenId: 'token-ana' };
export const BEN: Caller = { kind: 'user', userId: 'ben', userName: 'ben', tokenId: 'token-ben' };

/** Tells the endpoint under test who is calling, as authentication does in the application. */
export function as(caller: Caller): Record<string, string> {
  return { 'x-caller': JSON.stringify(caller) };
}

export interface EndpointServer {
  readonly url: string;
  readonly endpoint: McpEndpoint;
  /** Ends the callers' tokens. */
  revoke(caller: Caller): void;
  readonly watchers: () => number;
  connect(path?: string, headers?: Record<string, string>): Promise<Client>;
  post(body: unknown, headers?: Record<string, string>, path?: string, signal?: AbortSignal): Promise<Response>;
  /** As when the application stops. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

type Overrides = Partial<Pick<McpEndpointSetup, 'hold' | 'sessions' | 'keepAliveMs' | 'log' | 'shutdownPatienceMs'>>;

/** The endpoint on a real HTTP server, with nothing else of the application. */
export async function startEndpoint(tools: readonly Tool[], overrides: Overrides = {}): Promise<EndpointServer> {
  const watched = new Map<() => void, string>();
  const identity = { name: 'clarion-test', title: 'Test', version: '0', instructions: 'For tests.' };
  const endpoint = new McpEndpoint({
    tools: {
      external: tools.filter((tool) => tool.surface === 'external'),
      session: tools.filter((tool) => tool.surface === 'session'),
    },
    servers: { external: identity, session: identity },
    hold: { askHoldMs: 60_000, waitTimeoutMs: 60_000, progressEveryMs: 60_000 },
    watchCaller: (caller, onEnded) => {
      watched.set(onEnded, JSON.stringify(caller));
      return () => watched.delete(onEnded);
    },
    log: { error: () => undefined },
    shutdownPatienceMs: 1,
    ...overrides,
  });
  const server = createServer((req, res) => void serve(endpoint, req, res));
  const stop = async () => {
    endpoint.onModuleDestroy();
    await endpoint.beforeApplicationShutdown();
  };
  const clients: Client[] = [];
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    endpoint,
    watchers: () => watched.size,
    stop,
    revoke: (caller) => {
      for (const [onEnded, key] of [...watched]) if (key === JSON.stringify(caller)) onEnded();
    },
    connect: async (path = '/mcp', headers = {}) => {
      const client = new Client({ name: 'test', version: '0' });
      const transport = new StreamableHTTPClientTransport(new URL(url + path), { requestInit: { headers } });
      await client.connect(transport);
      clients.push(client);
      return client;
    },
    post: (body, headers = {}, path = '/mcp', signal) =>
      fetch(url + path, {
        method: 'POST',
        headers: { ...JSON_HEADERS, ...headers },
        body: JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      }),
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await stop();
      await closed(server);
    },
  };
}

export const JSON_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '0' } },
};

export interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: { readonly structuredContent?: Record<string, unknown> };
  readonly error?: { readonly code: number };
}

/** The JSON-RPC messages of a whole event stream. */
export async function messagesOf(response: Response): Promise<Message[]> {
  const text = await response.text();
  return [...text.matchAll(/^data: (.+)$/gm)].map((match) => JSON.parse(match[1] ?? '') as Message);
}

async function serve(endpoint: McpEndpoint, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const caller = JSON.parse(String(req.headers['x-caller'] ?? JSON.stringify(UNSCOPED))) as Caller;
  const sessionId = /^\/mcp\/sessions\/([^/]+)$/.exec(req.url ?? '')?.[1];
  const arrival = {
    surface: sessionId === undefined ? ('external' as const) : ('session' as const),
    ...(sessionId === undefined ? {} : { sessionId }),
    caller,
    deadline: Deadline.after(5_000),
    requestId: 'request-1',
    holdOpen: () => () => undefined,
  };
  try {
    if (req.method === 'GET') return await endpoint.get(arrival, req, res);
    if (req.method === 'DELETE') return await endpoint.delete(arrival, req, res);
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    await endpoint.post(arrival, req, res, JSON.parse(Buffer.concat(chunks).toString()));
  } catch (error) {
    const code = error instanceof DomainError ? error.code : 'internal';
    res.writeHead(STATUS[code] ?? 500, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ error: (error as Error).message, code }));
  }
}

async function closed(server: Server): Promise<void> {
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
}
