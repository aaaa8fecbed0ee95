import type { Tx } from '../../persistence/unit-of-work.js';
import type { AuthorType } from '../../tasks/persistence/messages.repository.js';
import { lockSession, type SessionRow } from '../../tasks/persistence/sessions.repository.js';
import type { BundleRow } from '../domain/bundle.js';
import { changeRows, lockBundle } from './bundles.repository.js';
import type { ClaimedBundle } from './claim-bundle.tx.js';

/** Who gave an answer: the prompt that carries it bears their name. */
export interface Answerer {
  readonly authorType: AuthorType;
  readonly authorId: string;
}

/**
 * The session's lock and the claimed rows whose intent is still set; none of them when the hand-over is already
 * settled, undefined when the rows are not this claim's any more.
 */
export async function lockClaim(
  tx: Tx,
  bundle: ClaimedBundle,
): Promise<{ session: SessionRow; claimed: readonly BundleRow[]; rows: readonly BundleRow[] } | undefined> {
  const session = await lockSession(tx, bundle.sessionId);
  if (session === undefined) return undefined;
  const ids = new Set(bundle.claimedRowIds);
  const claimed = (await lockBundle(tx, bundle.pendingId)).filter((row) => ids.has(row.id));
  if (claimed.length !== ids.size || claimed.some((row) => row.status !== bundle.claimStatus)) return undefined;
  return { session, claimed, rows: claimed.filter((row) => row.deliveryPending) };
}

/** Leaves updated_at alone: it is when the answer was given. */
export async function settle(tx: Tx, rows: readonly BundleRow[]): Promise<void> {
  await changeRows(
    tx,
    rows.map((row) => ({ row, change: { kind: 'settled' } })),
    null,
  );
}
