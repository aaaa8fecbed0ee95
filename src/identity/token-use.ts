import type { BeforeApplicationShutdown } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { Clock, laterOf, plusMilliseconds } from '../common/clock.js';
import type { Instant } from '../common/clock.js';
import { Deadline } from '../common/deadline.js';
import { Log } from '../observability/log.js';
import { UnitOfWork } from '../persistence/unit-of-work.js';
import type { AccessToken } from './persistence/access-tokens.repository.js';
import { AccessTokensRepository } from './persistence/access-tokens.repository.js';

/** An operator asks "is it still used?", which a minute answers as well as a millisecond. */
const RESOLUTION_MS = 60_000;
/** Callers that arrive together share one write, and none of them stands behind it in the writer's queue. */
const GATHER_MS = 250;
const WRITE_BUDGET_MS = 5_000;

/**
 * Keeps `last_used_at`, behind the requests: a token costs at most one write a minute, whose failure nobody but the
 * log notices. What is lost with the process is a minute of precision.
 */
@Injectable()
export class TokenUse implements BeforeApplicationShutdown {
  private readonly unrecorded = new Set<string>();
  /** When a write was last asked for, so that a failing one is not tried again by every request. */
  private readonly attempts = new Map<string, Instant>();
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private isShutDown = false;

  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly tokens: AccessTokensRepository,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Returns at once and never throws. */
  seen(token: Pick<AccessToken, 'id' | 'lastUsedAt'>): void {
    const now = this.clock.now();
    const known = laterOf(token.lastUsedAt ?? '', this.attempts.get(token.id) ?? '');
    if (this.isShutDown || (known !== '' && now < plusMilliseconds(known, RESOLUTION_MS))) return;
    this.attempts.set(token.id, now);
    this.unrecorded.add(token.id);
    this.timer ??= setTimeout(() => void this.flush(), GATHER_MS).unref();
  }

  /** Resolves when everything seen so far has been written, or could not be. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.writing = this.writing.then(() => this.write());
    await this.writing;
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.isShutDown = true;
    await this.flush();
  }

  private async write(): Promise<void> {
    if (this.unrecorded.size === 0) return;
    const ids = [...this.unrecorded];
    const now = this.clock.now();
    this.unrecorded.clear();
    for (const [id, at] of this.attempts) {
      if (now >= plusMilliseconds(at, RESOLUTION_MS)) this.attempts.delete(id);
    }
    try {
      await this.unitOfWork.run('token.use', Deadline.after(WRITE_BUDGET_MS), (tx) =>
        this.tokens.recordUse(tx, ids, now),
      );
    } catch (error) {
      this.log.warn('token.use_not_recorded', { tokens: ids.length, error });
    }
  }
}
