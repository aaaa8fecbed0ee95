import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestId } from '@modelcontextprotocol/sdk/types.js';
import type { Deadline } from '../../common/deadline.js';
import type { Caller } from '../../identity/caller.js';
import type { Surface } from '../tools/tool.js';

/** What the request pipeline found out about one HTTP request before it reached an MCP endpoint. */
export interface Arrival {
  readonly surface: Surface;
  /** The session in the path, on the `session` surface; access to it has been checked. */
  readonly sessionId?: string;
  readonly caller: Caller;
  readonly deadline: Deadline;
  readonly requestId: string;
  /**
   * Counts the request as held open until the returned function is called.
   * @throws TooManyRequestsError, TemporarilyUnavailableError
   */
  readonly holdOpen: () => () => void;
}

/** A JSON-RPC request as far as it is looked at before the SDK reads it. */
interface RequestMessage {
  readonly id: RequestId;
  readonly method: string;
  readonly params?: unknown;
}

/** One HTTP request on an MCP endpoint with the JSON-RPC requests in it. */
export class Exchange {
  readonly requests: readonly RequestMessage[];

  constructor(
    readonly arrival: Arrival,
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    /** The JSON that the pipeline has parsed. */
    readonly body: unknown,
  ) {
    const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
    this.requests = messages.filter(isRequestMessage);
  }

  /** The `arguments` of a tool call exactly as they were sent: the SDK's parser drops keys such as `__proto__`. */
  argumentsOf(id: RequestId): unknown {
    const params = this.requests.find((request) => request.id === id)?.params;
    return typeof params === 'object' && params !== null && 'arguments' in params ? params.arguments : undefined;
  }

  /**
   * The body for the SDK. It lacks `task` of a tool call: who does not offer tasks must ignore the wish for one, and
   * the SDK refuses the call as an internal error.
   */
  get message(): unknown {
    return Array.isArray(this.body) ? this.body.map(withoutTask) : withoutTask(this.body);
  }

  /** Calls back when nothing can be written any more: the reply was written out whole, or the connection closed. */
  onClose(listener: (written: boolean) => void): void {
    if (this.res.closed) listener(this.res.writableFinished);
    else this.res.once('close', () => listener(this.res.writableFinished));
  }
}

function isRequestMessage(message: unknown): message is RequestMessage {
  return (
    typeof message === 'object' &&
    message !== null &&
    'method' in message &&
    typeof message.method === 'string' &&
    'id' in message &&
    (typeof message.id === 'string' || typeof message.id === 'number')
  );
}

function withoutTask(message: unknown): unknown {
  if (!isRequestMessage(message) || message.method !== 'tools/call') return message;
  const { params } = message;
  if (typeof params !== 'object' || params === null || !('task' in params)) return message;
  const { task: _ignored, ...others } = params;
  return { ...message, params: others };
}
