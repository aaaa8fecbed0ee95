import type { Deadline } from '../../common/deadline.js';
import type { EndSignal } from '../../common/end-signal.js';

/** One message to an agent that has to be told of a turn: the same bytes and the same id each time it is sent. */
export interface AgentCall {
  /** The turn's id, which the receiver may know a repetition by. */
  readonly id: string;
  readonly url: string;
  /** `whsec_` and base64. Never logged. */
  readonly secret: string;
  /** JSON text. */
  readonly body: string;
}

/** What is known of a call afterwards. `reason` is for logs: a status or an error code, never a word of a body. */
export type CallResult =
  | { readonly kind: 'accepted' }
  /** The agent cannot have acted on it: no connection, the request not fully sent, or refused by its status. */
  | { readonly kind: 'not-delivered'; readonly reason: string }
  /** Sent, and no reply: it may have arrived. */
  | { readonly kind: 'unknown'; readonly reason: string };

/** How a turn reaches an agent that does not fetch it: the way out of the process. */
export abstract class ResumePort {
  /**
   * Never throws. Returns by the deadline, or as soon as `abort` is.
   */
  abstract call(call: AgentCall, deadline: Deadline, abort?: EndSignal): Promise<CallResult>;
}
