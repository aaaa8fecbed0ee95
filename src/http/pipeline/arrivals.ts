import { AsyncResource } from 'node:async_hooks';
import type { NextFunction, RequestHandler } from 'express';
import type { PipelineRequest } from '../pipeline-request.js';

/**
 * For so long requests may be begun in one turn of the event loop: a thousand that arrive together would otherwise all be
 * begun before anybody is answered, a heartbeat sent or a deadline kept.
 */
const MS_A_TURN = 10;
const AT_MOST_A_TURN = 32;

/** Who finds others that have waited for more than this part of what is left of his budget would not be served in time. */
const HOPELESS = 0.3;

interface Arrived {
  readonly request: PipelineRequest;
  readonly since: number;
  readonly enter: (error?: unknown) => void;
}

/**
 * The door: lets requests in, in the order in which they came, as fast as the event loop can begin them. When that is too
 * slow the ones that come last are refused at once, before anything is done for them, so that those before them are
 * still served within their budget instead of all of them being too late. Health is asked past the door.
 */
export class Arrivals {
  private readonly waiting = new Set<Arrived>();
  private isTurnScheduled = false;
  /** When the first of this turn came straight in, and when the first that had waited was let in. */
  private arrivingSince: number | undefined;
  private lettingInSince: number | undefined;

  readonly middleware: RequestHandler = (incoming, _response, next) => {
    const request = incoming as PipelineRequest;
    if (request.path.startsWith('/health/')) return next();
    this.arrivingSince ??= performance.now();
    if (this.waiting.size > 0 || isOver(this.arrivingSince)) this.join(request, next);
    else next();
    this.scheduleTurn();
  };

  private join(request: PipelineRequest, next: NextFunction): void {
    const { deadline } = request;
    if (this.longestWaitMs() > deadline.remainingMs * HOPELESS) return next(deadline.expiry());
    // Let in by somebody else's turn, it still goes on as itself, in the log too.
    this.waiting.add({ request, since: performance.now(), enter: AsyncResource.bind((error) => next(error)) });
  }

  private longestWaitMs(): number {
    for (const { since } of this.waiting) return performance.now() - since;
    return 0;
  }

  /** Each on its own, so that the time it takes includes what follows in the same turn. */
  private scheduleTurn(): void {
    if (this.isTurnScheduled) return;
    this.isTurnScheduled = true;
    for (let left = Math.min(this.waiting.size, AT_MOST_A_TURN); left > 0; left -= 1)
      setImmediate(() => this.letOneIn());
    setImmediate(() => this.endTurn());
  }

  private letOneIn(): void {
    this.lettingInSince ??= performance.now();
    if (isOver(this.lettingInSince)) return;
    for (const arrived of this.waiting) {
      this.waiting.delete(arrived);
      const { request, enter } = arrived;
      // Or there is nobody left to answer.
      if (!request.callerGone.aborted) enter(request.deadline.isOver ? request.deadline.expiry() : undefined);
      return;
    }
  }

  private endTurn(): void {
    this.isTurnScheduled = false;
    this.arrivingSince = undefined;
    this.lettingInSince = undefined;
    if (this.waiting.size > 0) this.scheduleTurn();
  }
}

function isOver(since: number): boolean {
  return performance.now() - since >= MS_A_TURN;
}
