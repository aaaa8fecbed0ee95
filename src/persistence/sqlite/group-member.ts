import type { Deadline } from '../../common/deadline.js';
import type { Dialect } from '../dialect.js';
import { OpenTx } from '../open-tx.js';
import type { Tx } from '../unit-of-work.js';
import type { Waiting } from '../waiting-line.js';
import type { SqliteConnection } from './sqlite-connection.js';

interface Failure {
  readonly error: unknown;
}

/** One work on its way through the queue, its outcome so far, and whoever waits for it. */
export class GroupMember implements Waiting {
  private outcome: { readonly value: unknown } | Failure | undefined;

  constructor(
    private readonly dialect: Dialect,
    readonly deadline: Deadline,
    private readonly work: (tx: Tx) => Promise<unknown>,
    private readonly resolve: (value: unknown) => void,
    readonly reject: (error: unknown) => void,
  ) {}

  refuse(error: Error): void {
    this.reject(error);
  }

  /**
   * Runs the work, perhaps not for the first time. Tells nobody of the outcome yet.
   * @param bound its own deadline or an earlier one
   * @returns the failure, if it failed
   */
  async perform(connection: SqliteConnection, bound: Deadline): Promise<Failure | undefined> {
    const tx = new OpenTx(this.dialect, bound, (statement, values) => connection.execute(statement, values, bound));
    try {
      this.outcome = { value: await tx.perform(this.work) };
      return undefined;
    } catch (error) {
      return (this.outcome = { error });
    }
  }

  /** Whether its work is part of the open transaction; a refused one has been undone. */
  get hasChanges(): boolean {
    return this.outcome !== undefined && 'value' in this.outcome;
  }

  /** @returns whether it was told that its time is up, or that its caller has gone */
  rejectIfOver(): boolean {
    try {
      this.deadline.throwIfOver();
      return false;
    } catch (error) {
      this.reject(error);
      return true;
    }
  }

  /** Tells of the outcome. */
  settle(): void {
    if (this.outcome === undefined) throw new Error('a work that has not run has no outcome');
    if ('value' in this.outcome) this.resolve(this.outcome.value);
    else this.reject(this.outcome.error);
  }
}
