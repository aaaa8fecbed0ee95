import { Deadline } from '../../common/deadline.js';
import { TemporarilyUnavailableError } from '../../common/domain-error.js';
import { RolledBackError } from '../db-error.js';
import type { WaitBegins } from '../database-waits.js';
import { dialectOf } from '../dialect.js';
import { CommitOutcomeUnknownError, UnitOfWork, type Tx } from '../unit-of-work.js';
import { WaitingLine } from '../waiting-line.js';
import { GroupMember } from './group-member.js';
import type { SqliteConnection } from './sqlite-connection.js';

export interface GroupLimits {
  /** How many works one COMMIT carries at most. */
  readonly size: number;
  /** Who waits longer than this after the leader's part comes with the next group. */
  readonly joinMs: number;
  /** Longest that those who join may keep the ones before them from their COMMIT; then whoever is not done runs alone. */
  readonly limitMs: number;
}

/** A work takes a few milliseconds, so that neither time is met but by what is wrong or on a machine that is drowning. */
export const GROUP_LIMITS: GroupLimits = { size: 16, joinMs: 100, limitMs: 300 };

/**
 * Every write of this process on one connection, one work after the other: SQLite has one writer anyway. Another process
 * may hold the lock; then BEGIN is tried in short slices until the deadline.
 *
 * Works that wait when another has done its part share its COMMIT, whose wait for the disk is most of what they cost:
 *
 *   BEGIN IMMEDIATE · leader · SAVEPOINT · second · RELEASE · SAVEPOINT · third · RELEASE · … · COMMIT
 *
 * A later one sees what the earlier ones did, as it would if they had committed; so nobody, not even who was refused, hears
 * anything before the COMMIT has made that true. One that fails is undone by its savepoint, alone. Whenever the whole
 * transaction is lost, because SQLite undid it, COMMIT was refused, somebody's time ran out after its part or one took too
 * long, the others run again, each in a transaction of its own: so a neighbour can cost time, never the outcome.
 */
export class SqliteUnitOfWork extends UnitOfWork {
  readonly dialect = dialectOf('sqlite');
  private readonly waiting: WaitingLine<GroupMember>;
  private isWorking = false;
  private closed = false;
  private idle: (() => void)[] = [];

  /** @param connection its `busy_timeout` is the length of one slice: a busy wait cannot be interrupted */
  constructor(
    private readonly connection: SqliteConnection,
    waitBegins?: WaitBegins,
    private readonly limits: GroupLimits = GROUP_LIMITS,
  ) {
    super();
    this.waiting = new WaitingLine(waitBegins);
  }

  run<T>(_name: string, deadline: Deadline, work: (tx: Tx) => Promise<T>): Promise<T> {
    if (this.closed) return Promise.reject(deadline.expiry());
    return new Promise<T>((resolve, reject) => {
      this.waiting.join(new GroupMember(this.dialect, deadline, work, resolve as (value: unknown) => void, reject));
      if (!this.isWorking) void this.workOff();
    });
  }

  /** Accepts nothing more and waits for what was accepted. */
  async close(): Promise<void> {
    this.closed = true;
    if (this.isWorking) await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  private async workOff(): Promise<void> {
    this.isWorking = true;
    for (let leader = this.waiting.take(); leader !== undefined; leader = this.waiting.take()) {
      let again = await this.transact(leader, true);
      while (again.length > 0) {
        const [next, ...rest] = again as [GroupMember, ...GroupMember[]];
        again = [...(await this.transact(next, false)), ...rest];
      }
    }
    this.isWorking = false;
    for (const resolve of this.idle.splice(0)) resolve();
  }

  /**
   * One transaction, after which everybody in it has heard what became of their work.
   * @param takesOthers whether those who wait may join
   * @returns but for those who are to run again, each alone
   */
  private async transact(leader: GroupMember, takesOthers: boolean): Promise<GroupMember[]> {
    try {
      await this.begin(leader.deadline);
    } catch (error) {
      leader.reject(error);
      return [];
    }
    const failure = await leader.perform(this.connection, leader.deadline);
    if (failure !== undefined) {
      await this.rollBack();
      if (failure.error instanceof RolledBackError) return [leader];
      leader.reject(failure.error);
      return [];
    }
    const group = takesOthers ? await this.gather(leader) : { isIntact: true, together: [leader], alone: [] };
    if (group.isIntact) return [...(await this.commit(group.together)), ...group.alone];
    await this.rollBack();
    return [...group.together, ...group.alone];
  }

  /** Lets those join who wait, behind a leader who has done its part. */
  private async gather(leader: GroupMember): Promise<Group> {
    const together = [leader];
    const alone: GroupMember[] = [];
    const { size, joinMs, limitMs } = this.limits;
    const joining = Deadline.after(joinMs);
    const limit = Deadline.after(limitMs);
    // Whoever joins may cost the others a second run: nobody joins who could make one of them late.
    const hasTimeToRunAgain = ({ deadline }: GroupMember): boolean => deadline.remainingMs >= 2 * limitMs;
    while (together.length < size && !joining.isOver && together.every(hasTimeToRunAgain)) {
      const next = this.waiting.take();
      if (next === undefined) break;
      const fate = await this.join(next, limit);
      if (fate === 'in') together.push(next);
      else if (fate !== 'out') {
        if (fate.runsAgain) alone.push(next);
        if (!fate.isIntact) return { isIntact: false, together, alone };
      }
    }
    return { isIntact: true, together, alone };
  }

  /**
   * @returns `in` when its work, or its refusal, stands with the group's COMMIT; `out` when it has been told already and
   * changed nothing; else whether it is to run again, and whether the transaction is still that of the others
   */
  private async join(member: GroupMember, limit: Deadline): Promise<'in' | 'out' | Aside> {
    if (member.rejectIfOver()) return 'out';
    if ((await this.connection.command('SAVEPOINT member')) !== undefined) return { runsAgain: true, isIntact: false };
    const bound = member.deadline.withMilliseconds(Math.min(member.deadline.remainingMs, limit.remainingMs));
    const failure = await member.perform(this.connection, bound);
    if (failure === undefined) {
      const released = await this.connection.command('RELEASE member');
      return released === undefined ? 'in' : { runsAgain: true, isIntact: false };
    }
    // SQLite has undone everything when it stopped a change or the disk failed: then the savepoint is gone as well.
    const lost =
      (await this.connection.command('ROLLBACK TO member')) ?? (await this.connection.command('RELEASE member'));
    const isIntact = lost === undefined;
    if (member.rejectIfOver()) return { runsAgain: false, isIntact };
    if (!isIntact || mayPassAlone(failure.error)) return { runsAgain: true, isIntact };
    return 'in';
  }

  private async begin(deadline: Deadline): Promise<void> {
    for (;;) {
      deadline.throwIfOver();
      const failure = await this.connection.command('BEGIN IMMEDIATE');
      if (failure === undefined) return;
      if (failure.kind === 'unavailable') throw deadline.expiry(failure);
      if (failure.message.includes('within a transaction')) await this.rollBack();
      else if (failure.kind === 'defect') throw failure;
    }
  }

  /**
   * COMMIT is never interrupted: what SQLite answers decides. Before it everybody's deadline is asked once more.
   * @returns those who are to run again
   */
  private async commit(group: readonly GroupMember[]): Promise<GroupMember[]> {
    const late = group.filter((member) => member.hasChanges && member.rejectIfOver());
    if (late.length > 0) {
      await this.rollBack();
      return group.filter((member) => !late.includes(member));
    }
    const failure = await this.connection.command('COMMIT');
    if (failure === undefined) {
      for (const member of group) member.settle();
      return [];
    }
    await this.rollBack();
    // After a failed write to the disk a commit mark may or may not be in the file when it is next recovered.
    if (failure.driverCode === 'SQLITE_IOERR') {
      const inDoubt = group.filter((member) => member.hasChanges);
      for (const member of inDoubt) member.reject(new CommitOutcomeUnknownError({ cause: failure }));
      return group.filter((member) => !member.hasChanges);
    }
    const [only, ...others] = group as [GroupMember, ...GroupMember[]];
    if (others.length > 0 || failure instanceof RolledBackError) return [...group];
    only.reject(failure.kind === 'unavailable' ? only.deadline.expiry(failure) : failure);
    return [];
  }

  /**
   * SQLite itself has rolled back when it interrupted a write or the disk failed; then there is nothing left to undo
   * and the command says so. Should a transaction be left open all the same, the next BEGIN finds it and ends it.
   */
  private async rollBack(): Promise<void> {
    await this.connection.command('ROLLBACK');
  }
}

interface Group {
  /** Whether the transaction is still open with everything that `together` did. */
  readonly isIntact: boolean;
  readonly together: readonly GroupMember[];
  readonly alone: readonly GroupMember[];
}

interface Aside {
  readonly runsAgain: boolean;
  readonly isIntact: boolean;
}

/** The database undid it, or it was stopped by the group's limit and not by its own deadline. */
function mayPassAlone(error: unknown): boolean {
  return error instanceof RolledBackError || error instanceof TemporarilyUnavailableError;
}
