import type { Caller } from '../../identity/caller.js';
import type { SqlValue } from '../../persistence/unit-of-work.js';

export interface BoundPredicate {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/**
 * THE access rule (A4, D5, L1c), for `task`, an alias of tasks: everything for an unscoped caller; for a user every
 * task whose workspace is empty, does not exist, is unowned or is their own; nothing for an agent, whose rights end at its
 * session. `next` is the number of the first free placeholder.
 */
export function isVisibleTask(caller: Caller, task: string, next: number): BoundPredicate {
  return visibleTo(
    caller,
    `(${task}.workspace_id = '' OR NOT EXISTS (SELECT 1 FROM workspaces vw
      WHERE vw.id = ${task}.workspace_id AND vw.owner_id NOT IN ('', $${next})))`,
  );
}

/** Where a task is, as the rule looks at it. */
export interface TaskHome {
  /** `''` when it is in none. */
  readonly workspaceId: string;
  /** Null when the workspace does not exist. */
  readonly ownerId: string | null;
}

/** The same rule for a task that has been read; a test holds the two against each other. */
export function isVisibleHome(caller: Caller, { workspaceId, ownerId }: TaskHome): boolean {
  switch (caller.kind) {
    case 'unscoped':
      return true;
    case 'agent':
      return false;
    case 'user':
      return workspaceId === '' || ownerId === null || ownerId === '' || ownerId === caller.userId;
  }
}

/** The same rule for `workspace`, an alias of workspaces. */
export function isVisibleWorkspace(caller: Caller, workspace: string, next: number): BoundPredicate {
  return visibleTo(caller, `${workspace}.owner_id IN ('', $${next})`);
}

/** @param ofUser the rule for a user, whose id is its one parameter */
function visibleTo(caller: Caller, ofUser: string): BoundPredicate {
  switch (caller.kind) {
    case 'unscoped':
      return { sql: '1 = 1', params: [] };
    case 'agent':
      return { sql: '1 = 0', params: [] };
    case 'user':
      return { sql: ofUser, params: [caller.userId] };
  }
}
