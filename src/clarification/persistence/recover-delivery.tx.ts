import type { Instant } from '../../common/clock.js';
import type { SqlExecutor, Tx } from '../../persistence/unit-of-work.js';
import type { ClarificationPort } from '../../tasks/clarification.port.js';
import { announcedMetadata } from '../../tasks/domain/reservation.js';
import {
  findReservation,
  isPureReservation,
  setTurnMetadata,
  type ReservedTurnRow,
} from '../../tasks/persistence/reservations.repository.js';
import { lockSession } from '../../tasks/persistence/sessions.repository.js';
import { publishAnswer, withdrawAnswer, type Published, type ReservedAnswer } from './dispatch-answer.tx.js';
import type { Restored } from './restore-bundle.tx.js';

export type RecoveredReservation =
  | Restored
  | Published
  /** A hand-over of this process sees to it. */
  | { readonly kind: 'owned' };

/**
 * A reservation that its hand-over has left behind. One that was never attempted, and into which nothing was written, has
 * reached nobody: withdrawn, its rows restored. Any other may have: published, into the mailbox as well, and the agent is
 * called again. Repeats every look under the session's lock; killed before COMMIT, the next recovery finds it as it was.
 *
 * @param remembered what this process remembers of the call, when it made it; asked under the lock, like the next
 * @param isBeingDelivered whether a hand-over of this process sees to it
 */
export async function recoverReservation(
  tx: Tx,
  answer: ReservedAnswer,
  remembered: () => 'accepted' | 'not-delivered' | undefined,
  isBeingDelivered: () => boolean,
  clarifications: ClarificationPort,
  now: Instant,
): Promise<RecoveredReservation> {
  const session = await lockSession(tx, answer.sessionId);
  if (session === undefined) return { kind: 'gone' };
  if (isBeingDelivered()) return { kind: 'owned' };
  const known = remembered();
  const reservation = await findReservation(tx, session.id, answer.turnId);
  if (reservation === undefined) return { kind: 'settled', events: [] };
  if (isPureReservation(reservation) || known === 'not-delivered') {
    const withdrawn = await withdrawAnswer(tx, answer, clarifications, now);
    if (withdrawn !== undefined) return withdrawn;
  }
  const how = { isAccepted: known === 'accepted', isAnnounced: false, pauseMs: 0 };
  return publishAnswer(tx, answer, how, clarifications, now);
}

/** Its events have been sent. */
export async function recordAnnouncement(tx: SqlExecutor, turn: ReservedTurnRow, now: Instant): Promise<void> {
  await lockSession(tx, turn.task_session_id);
  await setTurnMetadata(tx, turn.id, announcedMetadata(turn.metadata), now);
}
