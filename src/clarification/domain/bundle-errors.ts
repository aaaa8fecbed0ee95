import { NotActiveError, NotFoundError } from '../../common/domain-error.js';

/** A3, N5: one sentence for what is foreign, missing, hidden or gone, wherever that is found out. */
export function bundleNotFound(): NotFoundError {
  return new NotFoundError('clarification request not found');
}

/** Superseded, expired, cancelled or malformed, and nobody has answered (N4a). */
export function bundleNotActive(): NotActiveError {
  return new NotActiveError('clarification request is no longer active');
}
