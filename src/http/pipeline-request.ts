import type { Request } from 'express';
import type { Deadline } from '../common/deadline.js';
import type { EndSignal } from '../common/end-signal.js';
import type { Caller } from '../identity/caller.js';

/** A request as the pipeline hands it on. */
export interface PipelineRequest extends Request {
  /** Ours; none is accepted from outside. Also in `X-Request-Id` and in every log record. */
  requestId: string;
  /** Absent on open paths only, so that no handler there can take everybody for the unscoped caller. */
  caller?: Caller;
  /** The pre-claim budget (5.2), without the time the body took to arrive. */
  deadline: Deadline;
  /** Aborted when the connection closes before the response has been written out. */
  callerGone: EndSignal;
}
