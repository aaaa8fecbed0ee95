import type { Instant } from '../../common/clock.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import { lockSession } from '../../tasks/persistence/sessions.repository.js';
import { composeMetadata, type BundleChange } from '../domain/bundle-metadata.js';
import { inD2Order, readBundleRow, winnerResponse, type BundleRow, type Response } from '../domain/bundle.js';
import type { Outcome } from '../domain/validate-outcome.js';
import { isActiveBundleRow, pendingIdOf } from './active-bundle.predicate.js';
import { changeRows, lockBundle } from './bundles.repository.js';

/** A bundle that this caller has just resolved: its rows as they are now, and those that the claim moved. */
export interface ClaimedBundle {
  readonly pendingId: string;
  readonly sessionId: string;
  readonly taskId: string;
  readonly turnId: string;
  readonly status: 'answered' | 'rejected';
  readonly response: Response;
  readonly rows: readonly BundleRow[];
  readonly claimedRowIds: readonly string[];
  /** What the claim wrote; differs from `status` when earlier rows of a mixed bundle say otherwise (R2b). */
  readonly claimStatus: 'answered' | 'rejected';
}

export type Claim = { readonly kind: 'claimed'; readonly bundle: ClaimedBundle } | { readonly kind: 'lost' };

/**
 * THE claim (P1): active → delivery claimed, the only statement sequence that writes `answered` or `rejected`.
 *
 * Under the session's lock one UPDATE marks the active bundle's pending rows with a private status; whoever changes
 * rows has won, everybody else changes none. The rows then get their terminal status, the response and the delivery
 * intent, so that the private status is never committed. Killed before COMMIT, the bundle is as it was; after it, the
 * intent tells recovery that the hand-over is still owed.
 *
 * @param rows the bundle as it was validated; when it differs by now, the transaction is aborted
 */
export async function claimBundle(
  tx: Tx,
  pendingId: string,
  rows: readonly BundleRow[],
  outcome: Outcome,
  now: Instant,
): Promise<Claim> {
  const [first] = rows;
  if (first === undefined) throw new Error('a bundle without rows cannot be claimed');
  // First and alone: a claim that waits here for a newer turn or a final state sees it afterwards (READ COMMITTED).
  await lockSession(tx, first.sessionId);
  const current = await lockBundle(tx, pendingId);
  const { rows: marked } = await tx.query<{ id: string }>(
    `UPDATE task_session_messages AS m SET metadata = ${tx.dialect.metadataMarkedResponding('m.metadata')}
     WHERE ${pendingIdOf(tx.dialect, 'm')} = $1 AND ${isActiveBundleRow(tx.dialect, 'm')} RETURNING id`,
    [pendingId],
  );
  if (marked.length === 0) return { kind: 'lost' };
  assertUnchanged(rows, current);

  const claimedIds = new Set(marked.map((row) => row.id));
  const claimed = current.filter((row) => claimedIds.has(row.id));
  if (claimed.length !== marked.length) throw new Error('a claimed row is not among the rows that were locked');
  const change = changeFor(outcome);
  await changeRows(
    tx,
    claimed.map((row) => ({ row, change: change(row) })),
    now,
  );
  const after = current.map((row) => (claimedIds.has(row.id) ? moved(row, change(row), now) : row));
  return { kind: 'claimed', bundle: claimedBundle(pendingId, after, [...claimedIds], outcome) };
}

/**
 * Whether a claim whose COMMIT got no reply did happen (R4a): there are rows that carry what it would have written, of
 * its own instant. Under the session's lock, so that a COMMIT which the server is still working on is waited for.
 * Nothing else of the rows counts: they may have been detached, say, between validation and claim.
 */
export async function findCommittedClaim(
  tx: Tx,
  bundle: { readonly pendingId: string; readonly sessionId: string },
  outcome: Outcome,
  now: Instant,
): Promise<ClaimedBundle | undefined> {
  await lockSession(tx, bundle.sessionId);
  const rows = await lockBundle(tx, bundle.pendingId);
  const claimed = rows.filter((row) => row.updatedAt === now && row.deliveryPending && says(row, outcome));
  if (claimed.length === 0) return undefined;
  return claimedBundle(
    bundle.pendingId,
    rows,
    claimed.map((row) => row.id),
    outcome,
  );
}

function says(row: BundleRow, outcome: Outcome): boolean {
  if (row.status !== outcome.kind) return false;
  if (outcome.kind === 'rejected') return true;
  const answer = outcome.answers.find((entry) => entry.question_id === row.questionId);
  return JSON.stringify(row.response) === JSON.stringify(answer);
}

function claimedBundle(
  pendingId: string,
  rows: readonly BundleRow[],
  claimedRowIds: readonly string[],
  outcome: Outcome,
): ClaimedBundle {
  const ordered = inD2Order(rows);
  const winner = winnerResponse(ordered, pendingId, outcome.kind === 'rejected' ? outcome.reason : '');
  const [first] = ordered;
  if (winner === undefined || first === undefined) throw new Error('a claimed bundle has a resolved row');
  return {
    pendingId,
    sessionId: first.sessionId,
    taskId: first.taskId,
    turnId: first.turnId,
    ...winner,
    rows: ordered,
    claimedRowIds,
    claimStatus: outcome.kind,
  };
}

function changeFor(outcome: Outcome): (row: BundleRow) => BundleChange {
  if (outcome.kind === 'rejected') return () => ({ kind: 'rejected' });
  const answers = new Map(outcome.answers.map((answer) => [answer.question_id, answer]));
  return (row) => {
    const response = answers.get(row.questionId);
    if (response === undefined) throw new Error(`question row ${row.id} has no answer`);
    return { kind: 'answered', response };
  };
}

/** N6a: what was validated is what is claimed. */
function assertUnchanged(validated: readonly BundleRow[], current: readonly BundleRow[]): void {
  const known = new Map(validated.map((row) => [row.id, row.questionId]));
  const isSame =
    current.length === known.size &&
    current.every((row) => row.questionId !== '' && known.get(row.id) === row.questionId);
  if (!isSame) throw new Error('the rows of the bundle changed between validation and claim');
}

function moved(row: BundleRow, change: BundleChange, now: Instant): BundleRow {
  return readBundleRow({
    id: row.id,
    task_session_id: row.sessionId,
    task_id: row.taskId,
    session_task_id: row.taskId,
    turn_id: row.turnId,
    type: row.type,
    metadata: composeMetadata(row, change),
    created_at: row.createdAt,
    updated_at: now,
  });
}
