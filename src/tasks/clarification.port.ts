import { Injectable } from '@nestjs/common';
import type { Instant } from '../common/clock.js';
import type { DomainEvent } from '../events/domain-event.js';
import type { SqlExecutor, Tx } from '../persistence/unit-of-work.js';

/** A session in which somebody is asked something now. */
export interface WaitingSession {
  readonly session_id: string;
  readonly task_id: string;
  readonly is_primary: number;
}

/** What tasks need to know of, and do to, open questions. All of it asks the one activeness predicate (D4). */
export interface ClarificationPort {
  /** Whether a prompt has to wait: a question of the current turn is open, or an answer is being handed over. */
  holdsBackPrompts(sql: SqlExecutor, sessionId: string): Promise<boolean>;
  /** Of the sessions of these tasks, those with an active bundle. One statement, however many tasks. */
  sessionsWithActiveBundle(sql: SqlExecutor, taskIds: readonly string[]): Promise<readonly WaitingSession[]>;
  /** Notes that a turn has been followed by another one, for whoever looks for open questions. Under the session's lock. */
  noteSuperseded(tx: Tx, turnId: string, by: string): Promise<void>;
  /** Expires the current turn's pending questions; call before the session's state becomes final, under its lock. */
  expireActive(tx: Tx, sessionId: string, now: Instant): Promise<readonly DomainEvent[]>;
  /** Records that no agent waits on the current turn's questions any more; they stay answerable. Under the lock. */
  detachActive(tx: Tx, sessionId: string, now: Instant): Promise<readonly DomainEvent[]>;
}

/** Where the clarification feature, which builds on tasks, hands in its side of the port. */
@Injectable()
export class Clarifications {
  private implementation: ClarificationPort | undefined;

  provide(implementation: ClarificationPort): void {
    this.implementation = implementation;
  }

  get port(): ClarificationPort {
    if (this.implementation === undefined) throw new Error('no clarification feature has been provided');
    return this.implementation;
  }
}
