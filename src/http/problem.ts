import { HttpException } from '@nestjs/common';
import {
  DomainError,
  InternalError,
  TemporarilyUnavailableError,
  TooManyRequestsError,
} from '../common/domain-error.js';
import type { DomainErrorCode } from '../common/domain-error.js';

/** Every code's status on REST. A new code does not compile until it has one. */
export const HTTP_STATUS: Readonly<Record<DomainErrorCode, number>> = {
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  validation_failed: 400,
  not_active: 409,
  conflict: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  too_many_requests: 429,
  temporarily_unavailable: 503,
  wait_timeout: 504,
  internal: 500,
};

/** An error as a REST caller sees it. */
export interface Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: {
    readonly error: string;
    readonly code: DomainErrorCode;
    readonly request_id?: string;
    readonly retryable?: boolean;
  };
}

export function toProblem(error: unknown, requestId: string): Problem {
  const told = error instanceof DomainError ? error : fromNest(error);
  const { code } = told;
  return {
    status: HTTP_STATUS[code],
    headers: headersOf(told),
    body: { error: told.message, code, ...(told instanceof InternalError ? internals(told, requestId) : {}) },
  };
}

function headersOf(error: DomainError): Record<string, string> {
  if (error.code === 'unauthorized') return { 'WWW-Authenticate': 'Bearer realm="clarion"' };
  if (error instanceof TooManyRequestsError || error instanceof TemporarilyUnavailableError) {
    return { 'Retry-After': String(error.retryAfterSeconds) };
  }
  return {};
}

function internals(error: InternalError, requestId: string) {
  return { request_id: requestId, ...(error.retryable === undefined ? {} : { retryable: error.retryable }) };
}

class NoSuchRouteError extends DomainError {
  readonly code = 'not_found';
}

/** Nest itself throws only for a route that nobody has; anything else that is not ours is our fault. */
function fromNest(error: unknown): DomainError {
  if (error instanceof HttpException && error.getStatus() === 404) return new NoSuchRouteError('no such route');
  return new InternalError('something went wrong on our side; the log has more under this request_id', {
    cause: error,
  });
}
