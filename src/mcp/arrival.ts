import { UnauthorizedError } from '../common/domain-error.js';
import type { HeldRequests } from '../http/held-requests.js';
import type { PipelineRequest } from '../http/pipeline-request.js';
import type { Arrival } from './sdk/exchange.js';
import type { Surface } from './tools/tool.js';

/** What the endpoint needs to know of a request that the pipeline and the access guard have let through. */
export function arrivalOn(surface: Surface, request: PipelineRequest, held: HeldRequests): Arrival {
  const { caller, deadline, requestId } = request;
  if (caller === undefined) throw new UnauthorizedError('an access token is required');
  const base = { surface, caller, deadline, requestId, holdOpen: () => held.hold(request) };
  return surface === 'session' ? { ...base, sessionId: String(request.params['sessionId']) } : base;
}
