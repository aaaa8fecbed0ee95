import { DomainError, InternalError } from '../common/domain-error.js';
import type { DomainErrorCode } from '../common/domain-error.js';

type Sentence = (error: DomainError, requestId: string) => string;

const asItIs: Sentence = (error) => error.message;

/** What a tool call's client reads after the code. A new code does not compile until it is answered here. */
const SENTENCES: Record<DomainErrorCode, Sentence> = {
  unauthorized: asItIs,
  forbidden: asItIs,
  not_found: asItIs,
  validation_failed: asItIs,
  not_active: asItIs,
  conflict: asItIs,
  payload_too_large: asItIs,
  unsupported_media_type: asItIs,
  too_many_requests: asItIs,
  temporarily_unavailable: asItIs,
  wait_timeout: asItIs,
  internal: (error, requestId) => {
    const retryable = error instanceof InternalError ? error.retryable : undefined;
    const advice = retryable === undefined ? '' : `, retryable: ${retryable}`;
    return `${error.message} (request_id: ${requestId}${advice})`;
  },
};

/** `<code>: <sentence>`, the text of a failed tool call. Anything but a domain error is told without its message. */
export function toolErrorText(error: unknown, requestId: string): string {
  const told =
    error instanceof DomainError ? error : new InternalError('something went wrong on our side', { cause: error });
  return `${told.code}: ${SENTENCES[told.code](told, requestId)}`;
}

/** Whether somebody must look: a fault of ours, not a refusal. */
export function isOurFault(error: unknown): boolean {
  return !(error instanceof DomainError) || error.code === 'internal';
}
