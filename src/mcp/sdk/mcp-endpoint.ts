import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { BeforeApplicationShutdown, OnModuleDestroy } from '@nestjs/common';
import {
  ErrorCode,
  isInitializeRequest,
  JSONRPCMessageSchema,
  type CallToolResult,
} from '@modelcontextprotocol/sdk/types.js';
import { CallerGoneError } from '../../common/deadline.js';
import { NotFoundError, TemporarilyUnavailableError, UnauthorizedError } from '../../common/domain-error.js';
import { untilEvenStep } from '../../common/even-refusal.js';
import type { Caller } from '../../identity/caller.js';
import { CallHold, ShuttingDown } from '../call-hold.js';
import type { HoldLimits, ProgressReporter } from '../call-hold.js';
import type { Log } from '../../observability/log.js';
import { isOurFault, toolErrorText } from '../mcp-error.js';
import type { Surface, Tool } from '../tools/tool.js';
import { Exchange } from './exchange.js';
import type { Arrival } from './exchange.js';
import { KEEP_ALIVE_MS, McpSession } from './mcp-session.js';
import { McpSessions } from './mcp-sessions.js';
import type { OpenCall } from './open-call.js';
import type { ToolServerIdentity } from './tool-server.js';

/** Calls back when the caller's token stops working, until the returned function is called. */
export type WatchCaller = (caller: Caller, onEnded: () => void) => () => void;

export interface McpEndpointSetup {
  readonly tools: Readonly<Record<Surface, readonly Tool[]>>;
  readonly servers: Readonly<Record<Surface, ToolServerIdentity>>;
  readonly hold: HoldLimits;
  readonly watchCaller: WatchCaller;
  readonly log: Pick<Log, 'error'>;
  readonly sessions?: McpSessions;
  readonly keepAliveMs?: number;
  readonly shutdownPatienceMs?: number;
}

/** How long calls may end by themselves at shutdown, and then how long their replies may take to be written out. */
const SHUTDOWN_PATIENCE_MS = 1_000;
const FAREWELL_MS = 2_000;

/**
 * MCP over Streamable HTTP for both surfaces. It gets requests that have been authenticated and parsed, from callers
 * who may use the surface and, on `session`, the session in the path.
 */
export class McpEndpoint implements OnModuleDestroy, BeforeApplicationShutdown {
  private readonly sessions: McpSessions;
  private closing: Promise<void> | undefined;

  constructor(private readonly setup: McpEndpointSetup) {
    this.sessions = setup.sessions ?? new McpSessions();
  }

  /** @throws NotFoundError for an MCP session id that is unknown or another owner's; TooManyRequestsError */
  async post(arrival: Arrival, req: IncomingMessage, res: ServerResponse, body: unknown): Promise<void> {
    this.assertRunning();
    const exchange = new Exchange(arrival, req, res, body);
    const known = this.sessionOf(arrival, req);
    if (known !== undefined) {
      if (body === undefined) return refuse(res, ErrorCode.ParseError, NO_MESSAGE);
      if (!known.canTake(exchange)) return refuse(res, ErrorCode.InvalidRequest, 'this request id is already in use');
      return known.handle(exchange);
    }
    if (isInitializeRequest(Array.isArray(body) && body.length === 1 ? body[0] : body)) return this.open(exchange);
    if (JSONRPCMessageSchema.safeParse(body).success) return refuse(res, ErrorCode.InvalidRequest, SESSION_NEEDED);
    return refuse(res, ErrorCode.ParseError, NO_MESSAGE);
  }

  /** The stream of messages that answer no request. We send none, but clients open it and expect it to stay. */
  async get(arrival: Arrival, req: IncomingMessage, res: ServerResponse): Promise<void> {
    this.assertRunning();
    const session = this.sessionOf(arrival, req);
    if (session === undefined) return refuse(res, ErrorCode.InvalidRequest, SESSION_NEEDED);
    const exchange = new Exchange(arrival, req, res, undefined);
    const stopWatching = this.setup.watchCaller(arrival.caller, () => session.endStream());
    exchange.onClose(stopWatching);
    await session.handle(exchange);
  }

  async delete(arrival: Arrival, req: IncomingMessage, res: ServerResponse): Promise<void> {
    const session = this.sessionOf(arrival, req);
    if (session === undefined) return refuse(res, ErrorCode.InvalidRequest, SESSION_NEEDED);
    await session.handle(new Exchange(arrival, req, res, undefined));
  }

  /** Begins no more and ends what is open, in the background: the features end their waits in the same phase. */
  onModuleDestroy(): void {
    this.closing ??= this.endEverything();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.closing;
  }

  /**
   * Lets the calls under way be answered, at first by themselves, so that a confirmation that counts on one can finish;
   * then with `pending`. Streams are closed behind them, because the HTTP server waits for every connection.
   */
  private async endEverything(): Promise<void> {
    const sessions = this.sessions.all();
    await Promise.all(sessions.filter((session) => !session.isCalling).map((session) => session.close()));
    const calls = sessions.flatMap((session) => session.openCalls);
    const replies = calls.map((call) => new Promise<boolean>((resolve) => call.onReply(resolve)));
    const replied = Promise.all(replies);
    if (!(await isOverWithin(replied, this.setup.shutdownPatienceMs ?? SHUTDOWN_PATIENCE_MS))) {
      for (const call of calls) call.end(new ShuttingDown());
      await isOverWithin(replied, FAREWELL_MS);
    }
    await Promise.all(this.sessions.all().map((session) => session.close()));
  }

  private async open(exchange: Exchange): Promise<void> {
    const owner = ownerOf(exchange.arrival);
    await this.sessions.makeRoom(owner);
    const { surface } = exchange.arrival;
    let isOpened = false;
    const session = await McpSession.make({
      owner,
      server: this.setup.servers[surface],
      tools: this.setup.tools[surface],
      run: (...call) => this.run(...call),
      keepAliveMs: this.setup.keepAliveMs ?? KEEP_ALIVE_MS,
      onOpened: (opened) => {
        isOpened = true;
        this.sessions.add(opened);
      },
      onClosed: (closed) => this.sessions.remove(closed),
    });
    await session.handle(exchange);
    // The transport refused the request, say for its Accept header.
    if (!isOpened) await session.close();
  }

  private async run(
    tool: Tool,
    input: unknown,
    call: OpenCall,
    { arrival }: Exchange,
    progress: ProgressReporter | undefined,
  ): Promise<CallToolResult> {
    const { caller, sessionId, deadline, requestId } = arrival;
    const { hold } = this.setup;
    const stopWatching = this.setup.watchCaller(caller, () =>
      call.end(new UnauthorizedError('the access token is no longer valid')),
    );
    let release: (() => void) | undefined;
    try {
      if (tool.holds?.(input) === true) release = arrival.holdOpen();
      const result = await tool.handler(input ?? {}, {
        caller,
        ...(sessionId === undefined ? {} : { sessionId }),
        get signal() {
          return call.signal;
        },
        deadline,
        ...(progress === undefined ? {} : { progress }),
        get hold() {
          return new CallHold(hold, call.signal, progress);
        },
        onReply: call.onReply,
      });
      return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: { ...result } };
    } catch (error) {
      if (isOurFault(error) && !(error instanceof CallerGoneError)) {
        this.setup.log.error('mcp.tool_failed', { tool: tool.name, request_id: requestId, error });
      }
      if (error instanceof NotFoundError) await pause(untilEvenStep(deadline.startedAt));
      return { content: [{ type: 'text', text: toolErrorText(error, requestId) }], isError: true };
    } finally {
      release?.();
      stopWatching();
    }
  }

  private sessionOf(arrival: Arrival, req: IncomingMessage): McpSession | undefined {
    const id = req.headers['mcp-session-id'];
    if (id === undefined) return undefined;
    const session = this.sessions.find(String(id), ownerOf(arrival));
    if (session === undefined) throw new NotFoundError('MCP session not found; initialize a new one');
    return session;
  }

  private assertRunning(): void {
    if (this.closing !== undefined) throw new TemporarilyUnavailableError('the service is shutting down');
  }
}

const NO_MESSAGE = 'the body is not a JSON-RPC message';
const SESSION_NEEDED = 'the Mcp-Session-Id header is required; a session begins with initialize';

/** An MCP session id works for this text only: surface, session in the path, identity (any of a user's tokens). */
function ownerOf({ surface, sessionId, caller }: Arrival): string {
  return JSON.stringify([surface, sessionId ?? '', caller.kind, identityOf(caller)]);
}

function identityOf(caller: Caller): string {
  switch (caller.kind) {
    case 'unscoped':
      return '';
    case 'user':
      return caller.userId;
    case 'agent':
      return caller.sessionId;
  }
}

async function isOverWithin(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), milliseconds)));
  try {
    return await Promise.race([work.then(() => true as const), timeUp]);
  } finally {
    clearTimeout(timer);
  }
}

/** A protocol error outside any MCP session, in the shape that the SDK's transport gives its own. */
function refuse(res: ServerResponse, code: ErrorCode, message: string): void {
  res.writeHead(400, { 'content-type': 'application/json' });
  res.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
}
