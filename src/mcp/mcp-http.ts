import type { DomainErrorCode } from '../common/domain-error.js';
import { UnauthorizedError } from '../common/domain-error.js';
import { validateInput } from '../common/input/validate-input.js';
import type { Success } from '../http/contract.js';
import { readQuery } from '../http/read-query.js';
import type { PipelineRequest } from '../http/pipeline-request.js';
import type { Arrival } from './sdk/exchange.js';
import type { Surface } from './tools/tool.js';

const EVENTS = 'text/event-stream';

export const MCP_MESSAGES: Success = {
  status: 200,
  description: 'JSON-RPC messages as server-sent events, the last of them the reply; 202 to notifications',
  contentType: EVENTS,
};

export const MCP_STREAM: Success = {
  status: 200,
  description: 'A stream that stays open for messages that are no reply',
  contentType: EVENTS,
};

export const MCP_SESSION_ENDED: Success = { status: 200, description: 'The MCP session has ended' };

export const MCP_ERRORS: readonly DomainErrorCode[] = [
  'validation_failed',
  'not_found',
  'too_many_requests',
  'temporarily_unavailable',
];

class NoQuery {}

/**
 * What the endpoint needs to know of a request that the pipeline and the access guard have let through.
 *
 * @throws ValidationError for a query, of which there is none
 */
export function arrivalOn(surface: Surface, request: PipelineRequest): Arrival {
  const { caller, deadline, requestId } = request;
  validateInput(NoQuery, readQuery(request.url, NoQuery), 'query');
  if (caller === undefined) throw new UnauthorizedError('an access token is required');
  const base = { surface, caller, deadline, requestId };
  return surface === 'session' ? { ...base, sessionId: String(request.params['sessionId']) } : base;
}
