import type { Instant } from '../../common/clock.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import { discardedMetadata } from '../../tasks/domain/reservation.js';
import {
  deleteTurn,
  findReservation,
  isPureReservation,
  listReservations,
  setTurnMetadata,
} from '../../tasks/persistence/reservations.repository.js';
import { lockSession } from '../../tasks/persistence/sessions.repository.js';
import { completeRunningTurns } from '../../tasks/persistence/turns.repository.js';

export type Discarded =
  /** Its agent cannot have been called: the turn is gone. */
  | 'deleted'
  /** Its agent may have the answer: the turn stays, as an ordinary one. */
  | 'kept'
  /** There is no such turn, or it is not reserved. */
  | 'not-reserved';

/**
 * Lets go of a reservation, whether or not it can be read. The delivery intents of its bundle stay: the next start restores
 * them where the bundle's turn is current again, and keeps the answer as history where the turn that stays has followed.
 */
export async function discardReservation(tx: Tx, turnId: string, now: Instant): Promise<Discarded> {
  const found = (await listReservations(tx)).find(({ id }) => id === turnId);
  const session = found && (await lockSession(tx, found.task_session_id));
  const turn = session && (await findReservation(tx, session.id, turnId));
  if (turn === undefined) return 'not-reserved';
  if (isPureReservation(turn)) {
    await deleteTurn(tx, turn.id);
    return 'deleted';
  }
  await setTurnMetadata(tx, turn.id, discardedMetadata(turn.metadata), now);
  // It follows the turns before it, as one does that is opened.
  await completeRunningTurns(tx, turn.task_session_id, now, turn.id);
  return 'kept';
}
