import { TooManyRequestsError } from '../../common/domain-error.js';
import type { McpSession } from './mcp-session.js';

export interface SessionLimits {
  /** Per owner, so that nobody can take up everybody's room. */
  readonly perOwner: number;
  readonly overall: number;
  /** A session with no request or stream open for so long is given up; its client initialises anew. */
  readonly idleMs: number;
}

const SESSION_LIMITS: SessionLimits = { perOwner: 1_000, overall: 10_000, idleMs: 30 * 60_000 };

const RETRY_AFTER_SECONDS = 5;

/** The open MCP sessions, least recently used first. In memory only: after a restart every client initialises anew. */
export class McpSessions {
  private readonly entries = new Map<string, McpSession>();
  private readonly byOwner = new Map<string, Set<string>>();
  private sweeper: NodeJS.Timeout | undefined;

  constructor(private readonly limits: SessionLimits = SESSION_LIMITS) {}

  get size(): number {
    return this.entries.size;
  }

  all(): readonly McpSession[] {
    return [...this.entries.values()];
  }

  /** Undefined alike for an id that nobody has and for one that another owner opened. */
  find(id: string, owner: string): McpSession | undefined {
    const session = this.entries.get(id);
    if (session === undefined || session.owner !== owner) return undefined;
    this.touch(session);
    return session;
  }

  /**
   * Makes room for one more session of this owner, if need be in place of the one that has not been used for longest
   * and has no call under way.
   *
   * @throws TooManyRequestsError when every session has one
   */
  async makeRoom(owner: string): Promise<void> {
    const own = this.byOwner.get(owner);
    if (own !== undefined && own.size >= this.limits.perOwner) await this.evictOneOf(own);
    if (this.entries.size >= this.limits.overall) await this.evictOneOf(this.entries.keys());
  }

  add(session: McpSession): void {
    this.touch(session);
    this.sweeper ??= setInterval(() => void this.sweep(), this.limits.idleMs / 4).unref();
  }

  remove(session: McpSession): void {
    this.entries.delete(session.id);
    const own = this.byOwner.get(session.owner);
    own?.delete(session.id);
    if (own?.size === 0) this.byOwner.delete(session.owner);
    if (this.entries.size === 0) {
      clearInterval(this.sweeper);
      this.sweeper = undefined;
    }
  }

  /** Closes the sessions that have been idle for too long. */
  async sweep(now = performance.now()): Promise<void> {
    for (const session of this.all()) {
      if (now - session.idleSince >= this.limits.idleMs) await session.close();
    }
  }

  private async evictOneOf(ids: Iterable<string>): Promise<void> {
    for (const id of ids) {
      const session = this.entries.get(id);
      if (session !== undefined && !session.isCalling) return session.close();
    }
    throw new TooManyRequestsError('too many MCP sessions are open; end some, or try again later', RETRY_AFTER_SECONDS);
  }

  /** Maps and sets keep the order of insertion: what is put in again goes to the end. */
  private touch(session: McpSession): void {
    this.entries.delete(session.id);
    this.entries.set(session.id, session);
    const own = this.byOwner.get(session.owner) ?? new Set();
    own.delete(session.id);
    own.add(session.id);
    this.byOwner.set(session.owner, own);
  }
}
