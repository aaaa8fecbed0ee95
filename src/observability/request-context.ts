import { AsyncLocalStorage } from 'node:async_hooks';

/** Names for log records and nothing else: no transaction, caller or deadline travels this way. */
export interface RequestContext {
  readonly requestId: string;
}

const storage = new AsyncLocalStorage<RequestContext>();

/** Everything `work` starts logs under this request's id. */
export function runInRequest<T>(context: RequestContext, work: () => T): T {
  return storage.run(context, work);
}

/** Undefined outside a request: at start, in recovery, in timers. */
export function currentRequestId(): string | undefined {
  return storage.getStore()?.requestId;
}
