import { Injectable } from '@nestjs/common';
import { End, type EndSignal } from '../../common/end-signal.js';
import { UnauthorizedError, WaitTimeoutError } from '../../common/domain-error.js';
import type { OnReply } from '../../common/on-reply.js';
import { CallerLifetime } from '../../identity/caller-lifetime.js';
import type { Caller } from '../../identity/caller.js';
import type { ReachedBundle } from '../bundle-access.js';
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
    bundle: ReachedBundle,
    input: WaitInput,
    callerGone: EndSignal,
    onReply: OnReply,
  ): Promise<WaitResponse> {
    const ended = new End();
    let isTokenOver = false;
    const end = (): void => ended.abort();
    if (callerGone.aborted) end();
    callerGone.addEventListener('abort', end);
    const unwatch = this.lifetime.watch(caller, () => {
      isTokenOver = true;
      end();
    });
    try {
      const result = await this.bundles.wait(caller, bundle.pendingId, {
        ...(input.timeout !== undefined && { timeoutMs: input.timeout * 1000 }),
        signal: ended,
        authorised: bundle,
        onReply,
      });
      if (result.kind === 'response') return result.response;
      if (isTokenOver) throw new UnauthorizedError('the access token is no longer valid');
      throw new WaitTimeoutError('the request has not been answered yet; wait again');
    } finally {
      unwatch();
      callerGone.removeEventListener('abort', end);
    }
  }
}
