import { Injectable } from '@nestjs/common';
import type { Deadline } from '../common/deadline.js';
import type { Caller } from '../identity/caller.js';
import type { AccessKind } from './contract.js';
import type { PipelineRequest } from './pipeline-request.js';

/** @throws NotFoundError, the same one, when the thing is missing and when the caller may not see it */
export type AccessPolicy = (caller: Caller, id: string, deadline: Deadline, request: PipelineRequest) => Promise<void>;

/** Who may see what: filled by the features in `onModuleInit`, asked by the {@link AccessGuard}. */
@Injectable()
export class AccessPolicies {
  private readonly policies = new Map<AccessKind, AccessPolicy>();

  register(kind: AccessKind, policy: AccessPolicy): void {
    if (this.policies.has(kind)) throw new Error(`the access policy for a ${kind} is registered twice`);
    this.policies.set(kind, policy);
  }

  has(kind: AccessKind): boolean {
    return this.policies.has(kind);
  }

  /** The id is usable: see `usableId`. */
  async check(
    kind: AccessKind,
    caller: Caller,
    id: string,
    deadline: Deadline,
    request: PipelineRequest,
  ): Promise<void> {
    const policy = this.policies.get(kind);
    if (policy === undefined) throw new Error(`no access policy for a ${kind} is registered`);
    await policy(caller, id, deadline, request);
  }
}
