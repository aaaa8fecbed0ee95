import { Injectable } from '@nestjs/common';
import { UnauthorizedError, WaitTimeoutError } from '../../common/domain-error.js';
import type { OnReply } from '../../common/on-reply.js';
import { CallerLifetime } from '../../identity/caller-lifetime.js';
import type { Caller } from '../../identity/caller.js';
import { BundleWait, type WaitResponse } from '../delivery/bundle-wait.js';
import type { WaitInput } from '../inputs.js';

/** A wait as REST gives it: it ends with its connection, and with the token that it was begun with. */
@Injectable()
export class RestWait {
  constructor(
    private readonly bundles: BundleWait,
    private readonly lifetime: CallerLifetime,
  ) {}

  /** @throws WaitTimeoutError, NotActiveError, NotFoundError, UnauthorizedError when the token ended meanwhile */
  async wait(
    caller: Caller,
    pendingId: string,
    input: WaitInput,
    callerGone: AbortSignal,
    onReply: OnReply,
  ): Promise<WaitResponse> {
    const tokenEnded = new AbortController();
    const unwatch = this.lifetime.watch(caller, () => tokenEnded.abort());
    try {
      const result = await this.bundles.wait(caller, pendingId, {
        ...(input.timeout !== undefined && { timeoutMs: input.timeout * 1000 }),
        signal: AbortSignal.any([callerGone, tokenEnded.signal]),
        onReply,
      });
      if (result.kind === 'response') return result.response;
      if (tokenEnded.signal.aborted) throw new UnauthorizedError('the access token is no longer valid');
      throw new WaitTimeoutError('the request has not been answered yet; wait again');
    } finally {
      unwatch();
    }
  }
}
