/** The closed set of stable codes a caller may branch on. Every surface maps each of them. */
export const DOMAIN_ERROR_CODES = [
  'unauthorized',
  'forbidden',
  'not_found',
  'validation_failed',
  'not_active',
  'conflict',
  'payload_too_large',
  'unsupported_media_type',
  'too_many_requests',
  'temporarily_unavailable',
  'wait_timeout',
  'internal',
] as const;

export type DomainErrorCode = (typeof DOMAIN_ERROR_CODES)[number];

/**
 * A refusal or failure with a code machines branch on and a sentence for the reader.
 * The sentence is shown to callers as it is: it never holds SQL, secrets or anybody's answer.
 */
export abstract class DomainError extends Error {
  abstract readonly code: DomainErrorCode;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

export class UnauthorizedError extends DomainError {
  readonly code = 'unauthorized';
}

export class ForbiddenError extends DomainError {
  readonly code = 'forbidden';
}

export class NotFoundError extends DomainError {
  readonly code = 'not_found';
}

/** `field` is the path of the offending input, e.g. `questions[0].options[1].label`; the message names it. */
export class ValidationError extends DomainError {
  readonly code = 'validation_failed';

  constructor(
    readonly field: string,
    problem: string,
  ) {
    super(`${field} ${problem}`);
  }
}

export class NotActiveError extends DomainError {
  readonly code = 'not_active';
}

export class ConflictError extends DomainError {
  readonly code = 'conflict';
}

export class PayloadTooLargeError extends DomainError {
  readonly code = 'payload_too_large';
}

export class UnsupportedMediaTypeError extends DomainError {
  readonly code = 'unsupported_media_type';
}

export class TooManyRequestsError extends DomainError {
  readonly code = 'too_many_requests';

  constructor(
    message: string,
    readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}

/**
 * The same request may be sent again after `retryAfterSeconds`. Nothing was changed, unless the database was lost while it
 * confirmed.
 */
export class TemporarilyUnavailableError extends DomainError {
  readonly code = 'temporarily_unavailable';
  readonly retryAfterSeconds: number = 1;
}

export class WaitTimeoutError extends DomainError {
  readonly code = 'wait_timeout';
}

/** Our own fault. `retryable: false` means that the caller's answer is recorded all the same. */
export class InternalError extends DomainError {
  readonly code = 'internal';
  readonly retryable: boolean | undefined;

  constructor(message: string, options: { cause?: unknown; retryable?: boolean } = {}) {
    super(message, options);
    this.retryable = options.retryable;
  }
}
