import type { BeforeApplicationShutdown } from '@nestjs/common';
import type { Clock } from '../common/clock.js';
import { Deadline } from '../common/deadline.js';
import type { Log } from '../observability/log.js';
import type { Caller } from './caller.js';
import type { AccessTokensRepository, StandingTokens } from './persistence/access-tokens.repository.js';
import { agentTokenId } from './tokens.js';

type TokenHolder = Exclude<Caller, { kind: 'unscoped' }>;

interface Watched {
  readonly caller: TokenHolder;
  readonly listeners: Set<() => void>;
}

/**
 * Ends what a caller holds open (waits, streams) when its token stops working: at its expiry, and within one period
 * of being revoked, replaced or deleted. Those happen in another process (the command line), so the rows are asked:
 * one statement a period for all tokens that hold something open, none when nothing is.
 */
export class CallerLifetime implements BeforeApplicationShutdown {
  private readonly watched = new Map<string, Watched>();
  private timer: NodeJS.Timeout | undefined;
  /** Monotonic: when the timer fires, and when the rows are asked next. */
  private wakesAt = Infinity;
  private checksAt = Infinity;
  private checking: Promise<void> | undefined;
  private isShutDown = false;

  constructor(
    private readonly tokens: AccessTokensRepository,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly periodMs: number,
  ) {}

  /**
   * Calls `onEnded` once, never before this returns, when the caller's token has stopped working. An unscoped caller
   * has none and never ends. Whoever watches calls the returned function as soon as nothing is held open any more.
   */
  watch(caller: Caller, onEnded: () => void): () => void {
    if (caller.kind === 'unscoped' || this.isShutDown) return () => undefined;
    const key = keyOf(caller);
    const entry = this.watched.get(key) ?? { caller, listeners: new Set() };
    // Wrapped, so that the same function given twice counts twice.
    const listener = (): void => onEnded();
    entry.listeners.add(listener);
    this.watched.set(key, entry);
    if (this.wakesAt === Infinity && this.checking === undefined) this.checksAt = performance.now() + this.periodMs;
    this.wakeBy(Math.min(this.checksAt, this.expiryOf(caller)));
    return () => {
      entry.listeners.delete(listener);
      if (entry.listeners.size === 0 && this.watched.get(key) === entry) this.watched.delete(key);
    };
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.isShutDown = true;
    this.watched.clear();
    clearTimeout(this.timer);
    await this.checking;
  }

  /** One timer for everybody, at the earliest instant at which anything can have happened. */
  private wakeBy(at: number): void {
    if (at >= this.wakesAt) return;
    clearTimeout(this.timer);
    this.wakesAt = at;
    this.timer = setTimeout(() => this.wake(), Math.max(0, at - performance.now())).unref();
  }

  private wake(): void {
    this.wakesAt = Infinity;
    this.endExpired();
    if (this.watched.size === 0) return;
    if (performance.now() >= this.checksAt) {
      this.checksAt = Infinity;
      this.checking = this.endFallen().finally(() => {
        this.checking = undefined;
        this.checksAt = performance.now() + this.periodMs;
        if (this.watched.size > 0) this.wakeBy(this.checksAt);
      });
    }
    let earliest = this.checksAt;
    for (const { caller } of this.watched.values()) earliest = Math.min(earliest, this.expiryOf(caller));
    this.wakeBy(earliest);
  }

  /** Monotonic, like every deadline here; read again at each wake, because the wall clock may be set meanwhile. */
  private expiryOf(caller: TokenHolder): number {
    if (caller.kind === 'agent' || caller.expiresAt === undefined) return Infinity;
    return performance.now() + Date.parse(caller.expiresAt) - Date.parse(this.clock.now());
  }

  private endExpired(): void {
    const now = this.clock.now();
    for (const { caller } of [...this.watched.values()]) {
      if (caller.kind === 'user' && caller.expiresAt !== undefined && caller.expiresAt <= now) this.end(caller);
    }
  }

  /** A check that fails ends nobody: the database is away for everybody, and the next one follows in a period. */
  private async endFallen(): Promise<void> {
    const callers = [...this.watched.values()].map(({ caller }) => caller);
    const tokenIds = callers.flatMap((caller) => (caller.kind === 'user' ? [caller.tokenId] : []));
    const sessionIds = callers.flatMap((caller) => (caller.kind === 'agent' ? [caller.sessionId] : []));
    try {
      const standing = await this.tokens.findStanding(Deadline.after(5_000), tokenIds, [...new Set(sessionIds)]);
      const now = this.clock.now();
      for (const caller of callers) {
        if (!stands(caller, standing, now)) this.end(caller);
      }
    } catch (error) {
      this.log.warn('token.check_failed', { error });
    }
  }

  private end(caller: TokenHolder): void {
    const key = keyOf(caller);
    const listeners = this.watched.get(key)?.listeners ?? [];
    this.watched.delete(key);
    // Not a copy: one listener may stop another.
    for (const listener of listeners) {
      try {
        listener();
      } catch (error) {
        this.log.error('token.end_listener_failed', { error });
      }
    }
  }
}

function keyOf(caller: TokenHolder): string {
  return caller.kind === 'user' ? `user ${caller.tokenId}` : `agent ${caller.sessionId} ${caller.tokenId}`;
}

function stands(caller: TokenHolder, standing: StandingTokens, now: string): boolean {
  if (caller.kind === 'agent') {
    const hash = standing.agents.get(caller.sessionId);
    return hash !== undefined && agentTokenId(hash) === caller.tokenId;
  }
  const expiresAt = standing.users.get(caller.tokenId);
  return expiresAt !== undefined && (expiresAt === null || expiresAt > now);
}
