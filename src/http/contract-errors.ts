import { DOMAIN_ERROR_CODES } from '../common/domain-error.js';
import type { DomainErrorCode } from '../common/domain-error.js';
import type { Contract } from './contract.js';

/** What the pipeline and the input guard can answer on every route, a body sent to a GET included. */
const EVERYWHERE: readonly DomainErrorCode[] = [
  'validation_failed',
  'forbidden',
  'payload_too_large',
  'unsupported_media_type',
  'too_many_requests',
  'internal',
];

/** Every code that a route can answer with, in the order of the closed set. */
export function contractErrors({ access, errors = {} }: Contract): DomainErrorCode[] {
  const possible = new Set<DomainErrorCode>([...EVERYWHERE, ...(Object.keys(errors) as DomainErrorCode[])]);
  if (access.kind !== 'open') possible.add('unauthorized').add('temporarily_unavailable');
  if (access.kind !== 'open' && access.kind !== 'identified') possible.add('not_found');
  return DOMAIN_ERROR_CODES.filter((code) => possible.has(code));
}
