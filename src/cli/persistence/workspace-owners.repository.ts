import type { Instant } from '../../common/clock.js';
import type { Deadline } from '../../common/deadline.js';
import type { Reader, Tx } from '../../persistence/unit-of-work.js';

export interface OwnedWorkspace {
  readonly id: string;
  readonly name: string;
  /** `''` when nobody owns it: everybody sees it then. */
  readonly ownerId: string;
  /** `''` when nobody owns it, or its owner's row is gone. */
  readonly ownerName: string;
}

/** The operator's view of who owns what. */
export class WorkspaceOwnersRepository {
  /** Oldest first. */
  async list(reader: Reader, deadline: Deadline): Promise<OwnedWorkspace[]> {
    const { rows } = await reader.query<{ id: string; name: string; owner_id: string; owner_name: string }>(
      deadline,
      `SELECT w.id, w.name, w.owner_id, COALESCE(u.name, '') AS owner_name
       FROM workspaces w LEFT JOIN users u ON u.id = w.owner_id
       ORDER BY w.created_at, w.id`,
    );
    return rows.map((row) => ({ id: row.id, name: row.name, ownerId: row.owner_id, ownerName: row.owner_name }));
  }

  /** False when there is no such workspace. */
  async assign(tx: Tx, id: string, ownerId: string, at: Instant): Promise<boolean> {
    const { affected } = await tx.query('UPDATE workspaces SET owner_id = $2, updated_at = $3 WHERE id = $1', [
      id,
      ownerId,
      at,
    ]);
    return affected === 1;
  }
}
