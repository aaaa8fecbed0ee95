import { Injectable } from '@nestjs/common';
import type { Deadline } from '../common/deadline.js';
import { usableId } from '../common/ids.js';
import type { Caller } from '../identity/caller.js';
import { Reader } from '../persistence/unit-of-work.js';
import { TaskAccess } from '../tasks/authorization/task-access.js';
import { bundleNotFound } from './domain/bundle-errors.js';
import { bundleTaskId, type BundleRow } from './domain/bundle.js';
import { findBundle } from './persistence/bundles.repository.js';

/** A bundle that the caller has been found to reach. Only {@link BundleAccess} makes one. */
export class AuthorisedBundle {
  constructor(
    readonly pendingId: string,
    /** In D2 order, at least one. */
    readonly rows: readonly BundleRow[],
    readonly sessionId: string,
  ) {}
}

/** What is kept of an {@link AuthorisedBundle} while a call waits: not its rows, of which thousands would be held. */
export type ReachedBundle = Pick<AuthorisedBundle, 'pendingId' | 'sessionId'>;

/** Steps 1 and 2 of every operation on a bundle: whose is it (M5), and may the caller reach it (A1, A2)? */
@Injectable()
export class BundleAccess {
  constructor(
    private readonly reader: Reader,
    private readonly tasks: TaskAccess,
  ) {}

  /**
   * Unknown, foreign, hidden and M5a take one path, with the same statements, to one error (A3, A5).
   * @throws NotFoundError
   */
  async authorise(caller: Caller, pendingId: string, deadline: Deadline): Promise<AuthorisedBundle> {
    const id = usableId(pendingId);
    const rows = await findBundle(this.reader.within(deadline), id);
    const isAllowed = await this.isAllowed(caller, rows, deadline);
    const [first] = rows;
    if (!isAllowed || first === undefined) throw bundleNotFound();
    return new AuthorisedBundle(id, rows, first.sessionId);
  }

  private async isAllowed(caller: Caller, rows: readonly BundleRow[], deadline: Deadline): Promise<boolean> {
    switch (caller.kind) {
      case 'unscoped':
        return true;
      case 'agent':
        return rows.every((row) => row.sessionId === caller.sessionId);
      case 'user':
        // Asked even when nothing was found, so that a missing bundle costs what a foreign one does.
        return this.tasks.authorizeTaskAccess(caller, bundleTaskId(rows) ?? '', deadline);
    }
  }
}
