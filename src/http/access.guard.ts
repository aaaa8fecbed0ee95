import { Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { ForbiddenError, UnauthorizedError } from '../common/domain-error.js';
import { usableId } from '../common/ids.js';
import { AccessPolicies } from './access-policies.js';
import { contractOf } from './contract.js';
import type { IdSource } from './contract.js';
import type { PipelineRequest } from './pipeline-request.js';

/**
 * 403, then 404, before the input is validated: an id that is foreign, missing or malformed takes one path (A3). From
 * here on every path parameter is a usable id.
 */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(private readonly policies: AccessPolicies) {}

  async canActivate(context: ExecutionContext): Promise<true> {
    const request = context.switchToHttp().getRequest<PipelineRequest>();
    for (const [name, value] of Object.entries(request.params)) {
      request.params[name] = usableId(String(value));
    }
    const access = contractOf(context.getHandler())?.access;
    if (access?.kind === 'open') return true;
    const { caller, deadline } = request;
    // Neither can be: the start refuses handlers without contract, the pipeline requests without caller.
    if (access === undefined || caller === undefined) throw new UnauthorizedError('an access token is required');
    if (caller.kind === 'agent' && !access.agents) throw new ForbiddenError('an agent may not make this kind of call');
    if (access.kind === 'identified') return true;
    if (caller.kind === 'user' && access.users === false) {
      throw new ForbiddenError("this surface takes a session's agent token, not a user's");
    }
    const id = idFrom(access.from, request);
    if (id !== undefined) await this.policies.check(access.kind, caller, id, deadline, request);
    return true;
  }
}

/** Undefined where there is nothing to look up: an optional id left out, or one that validation will refuse. */
function idFrom(source: IdSource, request: PipelineRequest): string | undefined {
  if ('param' in source) return String(request.params[source.param]);
  const body: unknown = request.body;
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, source.body)) return undefined;
  const value = (body as Record<string, unknown>)[source.body];
  if (typeof value !== 'string' || (source.optional === true && value === '')) return undefined;
  return usableId(value);
}
