import type { ObjectSchema } from '../../common/input/field-rules.js';
import type { Deadline } from '../../common/deadline.js';
import type { OnReply } from '../../common/on-reply.js';
import type { Caller } from '../../identity/caller.js';
import type { CallHold, ProgressReporter } from '../call-hold.js';

/** `external` is `/mcp`, for users and their bots; `session` is one session's own endpoint, for its agent. */
export type Surface = 'external' | 'session';

/** What a client may assume before it calls. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: boolean;
}

/** One call of a tool, whatever carries it. */
export interface ToolCall {
  readonly caller: Caller;
  /** The session whose endpoint was called; access to it has been checked. Always there on the `session` surface. */
  readonly sessionId?: string;
  /**
   * Aborted when nobody waits for the result any more, when the caller's token ends, or at shutdown. Its reason is what
   * `hold` turns into the result; tools that do not wait may ignore it.
   */
  readonly signal: AbortSignal;
  /** The pre-claim budget, counted from the arrival of the request. It bounds the work, not the wait. */
  readonly deadline: Deadline;
  /** Present when the client asked for progress. */
  readonly progress?: ProgressReporter;
  readonly hold: CallHold;
  /**
   * Calls back once with whether the result has been written out to the client: false when its connection closed, or
   * it cancelled, before that.
   */
  readonly onReply: OnReply;
}

/** A tool as plain data and a function: it knows neither an SDK nor a transport. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly surface: Surface;
  readonly inputSchema: ObjectSchema;
  readonly outputSchema: { readonly type: 'object' };
  readonly annotations: ToolAnnotations;
  /** Whether a call with this input, of whatever shape, waits for something to happen: those are counted. */
  readonly holds?: (input: unknown) => boolean;
  /**
   * The result as JSON that `outputSchema` describes. `input` is whatever the client sent; it is validated here, after
   * access (404 before 400).
   *
   * @throws DomainError what the client is told; anything else is our fault
   */
  readonly handler: (input: unknown, call: ToolCall) => Promise<object>;
}
