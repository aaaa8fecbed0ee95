import type { Clock } from '../../common/clock.js';
import type { Deadline } from '../../common/deadline.js';
import { usableId } from '../../common/ids.js';
import type { Reader, UnitOfWork } from '../../persistence/unit-of-work.js';
import { MalformedReservationError, readReservation } from '../../tasks/domain/reservation.js';
import {
  isPureReservation,
  listReservations,
  listUnannouncedTurns,
  type ReservedTurnRow,
} from '../../tasks/persistence/reservations.repository.js';
import { discardReservation, type Discarded } from '../persistence/discard-reservation.tx.js';
import { listDeliveryIntents, type DeliveryIntent } from '../persistence/restore-bundle.tx.js';

export interface ReservedTurn {
  readonly turnId: string;
  readonly sessionId: string;
  /** `''` when the reservation cannot be read. */
  readonly pendingId: string;
  readonly isAttempted: boolean;
  readonly hasMessages: boolean;
  /** What the next start makes of it. */
  readonly nextStart: 'withdraw' | 'publish' | { readonly failsBecause: string };
}

/** What the next start has to see to: ids and states, nobody's words. */
export interface LeftOver {
  readonly reservations: readonly ReservedTurn[];
  readonly unannounced: readonly { readonly turnId: string; readonly sessionId: string }[];
  readonly intents: readonly DeliveryIntent[];
}

/** Recovery as an operator looks at it while no server runs, and does by hand what no start can decide. */
export class OfflineRecovery {
  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
  ) {}

  async leftOver(deadline: Deadline): Promise<LeftOver> {
    const sql = this.reader.within(deadline);
    const unannounced = await listUnannouncedTurns(sql);
    return {
      reservations: (await listReservations(sql)).map(reservedTurn),
      unannounced: unannounced.map((turn) => ({ turnId: turn.id, sessionId: turn.task_session_id })),
      intents: await listDeliveryIntents(sql),
    };
  }

  discard(turnId: string, deadline: Deadline): Promise<Discarded> {
    return this.unitOfWork.run('recovery.discard', deadline, (tx) =>
      discardReservation(tx, usableId(turnId), this.clock.now()),
    );
  }
}

/** Decided as `Recovery` does. */
function reservedTurn(turn: ReservedTurnRow): ReservedTurn {
  const isAttempted = turn.is_attempted === 1;
  const hasMessages = turn.has_messages === 1;
  const about = { turnId: turn.id, sessionId: turn.task_session_id, isAttempted, hasMessages };
  try {
    const { pendingId } = readReservation(turn.metadata);
    return { ...about, pendingId, nextStart: isPureReservation(turn) ? 'withdraw' : 'publish' };
  } catch (error) {
    if (!(error instanceof MalformedReservationError)) throw error;
    return { ...about, pendingId: '', nextStart: { failsBecause: error.message } };
  }
}
