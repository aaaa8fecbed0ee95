import type { RequestHandler } from 'express';
import { ipKeyGenerator, MemoryStore, rateLimit } from 'express-rate-limit';
import { TooManyRequestsError } from '../../common/domain-error.js';
import type { PipelineRequest } from '../pipeline-request.js';

const WINDOW_MS = 60_000;

/** How many requests a minute one caller may make: a user or an agent by identity, anybody else by address. */
export class RateLimit {
  private readonly store = new MemoryStore();
  readonly middleware: RequestHandler;

  constructor(perMinute: number) {
    const limit = rateLimit({
      windowMs: WINDOW_MS,
      limit: perMinute,
      store: this.store,
      keyGenerator: (request) => callerKey(request as PipelineRequest),
      skip: (request) => request.path.startsWith('/health/'),
      // Headers that count down would tell two answers to the same question apart (A3).
      standardHeaders: false,
      legacyHeaders: false,
      // Its checks write to the console; TRUST_PROXY has been checked at start.
      validate: false,
      handler: (request, _response, next) => {
        const { resetTime } = (request as unknown as { rateLimit: { resetTime?: Date } }).rateLimit;
        const seconds = Math.ceil(((resetTime?.getTime() ?? Date.now() + WINDOW_MS) - Date.now()) / 1_000);
        next(new TooManyRequestsError(`more than ${perMinute} requests in a minute`, Math.max(1, seconds)));
      },
    });
    this.middleware = perMinute === 0 ? (_request, _response, next) => next() : (limit as RequestHandler);
  }

  /** Ends the store's timer. */
  close(): void {
    this.store.shutdown();
  }
}

function callerKey({ caller, ip }: PipelineRequest): string {
  if (caller?.kind === 'user') return `user:${caller.userId}`;
  if (caller?.kind === 'agent') return `agent:${caller.sessionId}`;
  return `address:${ipKeyGenerator(ip ?? '')}`;
}
