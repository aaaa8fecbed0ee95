import { Injectable } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { TemporarilyUnavailableError, TooManyRequestsError } from '../common/domain-error.js';
import { Env } from '../config/env.js';
import type { Caller } from '../identity/caller.js';
import { Metrics } from '../observability/metrics.js';
import { clientNetwork } from './client-network.js';
import { LimitMetrics } from './limit-metrics.js';
import type { PipelineRequest } from './pipeline-request.js';

/** What is held lasts; whoever is refused need not ask again at once. */
const RETRY_AFTER_SECONDS = 5;

/**
 * Requests that are held open on purpose: waits and streams. They cost memory and a socket for as long as they last,
 * which no rate bounds, so they are counted: by caller (a user with all of their tokens, or one session's agent), by
 * address, and over all. What the process holds is given as an error of ours (503), the rest as the caller's (429).
 */
@Injectable()
export class HeldRequests {
  private readonly byCaller = new Map<string, number>();
  private readonly byNetwork = new Map<string, number>();
  private overall = 0;

  constructor(
    private readonly env: Env,
    private readonly limits: LimitMetrics,
    metrics: Metrics,
  ) {
    const current = (): number => this.overall;
    new Gauge({
      name: 'held_requests',
      help: 'Waits and streams that are held open now.',
      registers: [metrics.registry],
      collect() {
        this.set(current());
      },
    });
  }

  /**
   * Counts one more, until the returned function is called, which must be once.
   * @throws TooManyRequestsError, TemporarilyUnavailableError
   */
  hold(request: PipelineRequest): () => void {
    const network = clientNetwork(request);
    const caller = callerKey(request.caller, network);
    const { maxHeldRequests, maxHeldPerCaller, maxHeldPerAddress } = this.env;
    if (isFull(this.byCaller.get(caller), maxHeldPerCaller)) {
      this.limits.refused('held_caller');
      throw tooMany(`${maxHeldPerCaller} waits and streams of this caller`);
    }
    if (isFull(this.byNetwork.get(network), maxHeldPerAddress)) {
      this.limits.refused('held_address');
      throw tooMany(`${maxHeldPerAddress} waits and streams from this address`);
    }
    if (isFull(this.overall, maxHeldRequests)) {
      this.limits.refused('held');
      throw new TemporarilyUnavailableError('the server holds as many waits and streams as it may; try again later');
    }
    count(this.byCaller, caller, 1);
    count(this.byNetwork, network, 1);
    this.overall += 1;
    return () => {
      count(this.byCaller, caller, -1);
      count(this.byNetwork, network, -1);
      this.overall -= 1;
    };
  }
}

function callerKey(caller: Caller | undefined, network: string): string {
  switch (caller?.kind) {
    case 'user':
      return `user ${caller.userId}`;
    case 'agent':
      return `agent ${caller.sessionId}`;
    default:
      return `address ${network}`;
  }
}

function isFull(held = 0, most: number): boolean {
  return most > 0 && held >= most;
}

function tooMany(what: string): TooManyRequestsError {
  return new TooManyRequestsError(`${what} are open already; end some, or try again later`, RETRY_AFTER_SECONDS);
}

/** Nothing is kept of who holds nothing. */
function count(held: Map<string, number>, key: string, change: 1 | -1): void {
  const now = (held.get(key) ?? 0) + change;
  if (now === 0) held.delete(key);
  else held.set(key, now);
}
