import { randomUUID } from 'node:crypto';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { CallToolResult, RequestId } from '@modelcontextprotocol/sdk/types.js';
import type { ProgressReporter } from '../call-hold.js';
import type { Tool } from '../tools/tool.js';
import type { Exchange } from './exchange.js';
import { OpenCall } from './open-call.js';
import { makeToolServer } from './tool-server.js';
import type { ToolServerHost, ToolServerIdentity } from './tool-server.js';

/** Below the 10 s after which common proxies close a connection on which nothing has come. */
export const KEEP_ALIVE_MS = 5_000;

/** Runs one tool call to its result; a refusal or failure is a result too. */
export type ToolRunner = (
  tool: Tool,
  input: unknown,
  call: OpenCall,
  exchange: Exchange,
  progress: ProgressReporter | undefined,
) => Promise<CallToolResult>;

interface SessionSetup {
  /** Whom the session id works for: surface, session in the path and identity in one text. */
  readonly owner: string;
  readonly server: ToolServerIdentity;
  readonly tools: readonly Tool[];
  readonly run: ToolRunner;
  readonly keepAliveMs: number;
  readonly onOpened: (session: McpSession) => void;
  readonly onClosed: (session: McpSession) => void;
}

/** One MCP session: an SDK server, its transport, and the calls under way in it. */
export class McpSession implements ToolServerHost {
  readonly id = randomUUID();
  readonly owner: string;
  private readonly transport: StreamableHTTPServerTransport;
  private readonly exchanges = new Map<RequestId, Exchange>();
  private readonly calls = new Map<RequestId, OpenCall>();
  private connections = 0;
  private lastUsedAt = performance.now();

  private constructor(private readonly setup: SessionSetup) {
    this.owner = setup.owner;
    this.transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => this.id,
      onsessioninitialized: () => setup.onOpened(this),
      keepAliveMs: setup.keepAliveMs,
    });
  }

  static async make(setup: SessionSetup): Promise<McpSession> {
    const session = new McpSession(setup);
    const server = makeToolServer(setup.server, setup.tools, session);
    server.onclose = () => session.closed();
    await server.connect(session.transport);
    return session;
  }

  /** Monotonic milliseconds since which no HTTP request on it has been under way, a stream included. */
  get idleSince(): number {
    return this.connections === 0 ? this.lastUsedAt : Infinity;
  }

  get isCalling(): boolean {
    return this.exchanges.size > 0;
  }

  get openCalls(): readonly OpenCall[] {
    return [...this.calls.values()];
  }

  /** Whether the transport could tell the replies to these requests from those to others under way. */
  canTake(exchange: Exchange): boolean {
    const ids = exchange.requests.map((request) => request.id);
    return new Set(ids).size === ids.length && !ids.some((id) => this.exchanges.has(id));
  }

  /** Resolves when the reply has been written, however long its stream lasts. */
  async handle(exchange: Exchange): Promise<void> {
    // The client left before we came to it: its close has been told already, and nothing may begin on its behalf.
    if (exchange.res.closed) return;
    this.connections += 1;
    for (const { id } of exchange.requests) this.exchanges.set(id, exchange);
    exchange.onClose((written) => {
      this.connections -= 1;
      this.lastUsedAt = performance.now();
      for (const { id } of exchange.requests) {
        this.exchanges.delete(id);
        const call = this.calls.get(id);
        this.calls.delete(id);
        if (written) call?.settle(true);
        else call?.abandon();
      }
    });
    await this.transport.handleRequest(exchange.req, exchange.res, exchange.message);
  }

  async call(tool: Tool, id: RequestId, progress: ProgressReporter | undefined): Promise<CallToolResult> {
    const exchange = this.exchanges.get(id);
    if (exchange === undefined) return NOBODY_READS_THIS;
    const call = new OpenCall();
    this.calls.set(id, call);
    const result = await this.setup.run(tool, exchange.argumentsOf(id), call, exchange, progress);
    if (!call.cancelled) return result;
    // A cancelled request gets no reply; its stream ends without one. Among others in a batch, which share the stream,
    // it gets one that the client ignores, because the SDK ends the stream when all have theirs.
    if (exchange.requests.length === 1) this.transport.closeSSEStream(id);
    return NOBODY_READS_THIS;
  }

  cancel(id: RequestId): void {
    this.calls.get(id)?.cancel();
  }

  endStream(): void {
    this.transport.closeStandaloneSSEStream();
  }

  /** Ends its streams; the id is unknown from now on. */
  async close(): Promise<void> {
    await this.transport.close();
  }

  private closed(): void {
    for (const call of this.calls.values()) call.abandon();
    this.setup.onClosed(this);
  }
}

const NOBODY_READS_THIS: CallToolResult = { content: [] };
