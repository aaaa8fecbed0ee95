import { jsonObject } from '../../common/json-object.js';

/**
 * A turn that is reserved for handing an answer over by a dispatch, as its metadata says it:
 *
 *   reserved → attempted → published (the private keys are gone)
 *            ↘           ↘ removed, when the dispatch is known not to have happened
 *
 * From `attempted` on nobody can prove, after a crash, that the agent has not got it.
 */
export interface Reservation {
  /** The turn and the bundle whose answer it is to carry, and the exact rows that were claimed. */
  readonly askedInTurnId: string;
  readonly pendingId: string;
  readonly messageIds: readonly string[];
  readonly answerer: ReservedAuthor;
}

/** Who gave the answer; the prompt will bear their name. */
export interface ReservedAuthor {
  readonly authorType: 'user' | 'agent' | 'system';
  readonly authorId: string;
}

const PENDING = 'prompt_dispatch_pending';
const ATTEMPTED = 'prompt_dispatch_attempted';
const ASKED_IN = 'prompt_dispatch_clarification_turn_id';
const PENDING_ID = 'prompt_dispatch_clarification_pending_id';
const MESSAGE_IDS = 'prompt_dispatch_clarification_message_ids';
const AUTHOR_TYPE = 'prompt_dispatch_author_type';
const AUTHOR_ID = 'prompt_dispatch_author_id';
/** Published by recovery, and its events not sent yet. */
const UNANNOUNCED = 'prompt_dispatch_start_event_pending';

const PRIVATE: readonly string[] = [PENDING, ATTEMPTED, ASKED_IN, PENDING_ID, MESSAGE_IDS, AUTHOR_TYPE, AUTHOR_ID];

/** The turn carries the answer of this bundle. */
export const RESUMED_FROM = 'resumed_from_pending_id';

type Metadata = Readonly<Record<string, unknown>>;

export function reservationMetadata(reservation: Reservation): string {
  return JSON.stringify({
    [PENDING]: true,
    [ASKED_IN]: reservation.askedInTurnId,
    [PENDING_ID]: reservation.pendingId,
    [MESSAGE_IDS]: reservation.messageIds,
    [AUTHOR_TYPE]: reservation.answerer.authorType,
    [AUTHOR_ID]: reservation.answerer.authorId,
  });
}

export function attemptedMetadata(metadata: string): string {
  return JSON.stringify({ ...jsonObject(metadata), [ATTEMPTED]: true });
}

/** @param isAnnounced false when its events are still to be sent */
export function publishedMetadata(metadata: string, pendingId: string, isAnnounced: boolean): string {
  return JSON.stringify({
    ...without(metadata, PRIVATE),
    [RESUMED_FROM]: pendingId,
    ...(!isAnnounced && { [UNANNOUNCED]: true }),
  });
}

/** Of a turn whose reservation an operator has discarded: an ordinary turn, without the answer. */
export function discardedMetadata(metadata: string): string {
  return JSON.stringify(without(metadata, PRIVATE));
}

export function announcedMetadata(metadata: string): string {
  return JSON.stringify(without(metadata, [UNANNOUNCED]));
}

/** What is wrong with a reservation, in words for an operator. */
export class MalformedReservationError extends Error {
  constructor(key: string, expected: string) {
    super(`metadata.${key} is not ${expected}`);
    this.name = 'MalformedReservationError';
  }
}

/** @throws MalformedReservationError when nobody can tell from it what to put back */
export function readReservation(metadata: string): Reservation {
  const document = jsonObject(metadata);
  const messageIds = document[MESSAGE_IDS];
  if (!Array.isArray(messageIds) || !messageIds.every(isName)) {
    throw new MalformedReservationError(MESSAGE_IDS, 'a list of non-empty texts');
  }
  const pendingId = document[PENDING_ID];
  if (!isName(pendingId)) throw new MalformedReservationError(PENDING_ID, 'a non-empty text');
  const askedInTurnId = document[ASKED_IN];
  if (!isName(askedInTurnId)) throw new MalformedReservationError(ASKED_IN, 'a non-empty text');
  const authorType = document[AUTHOR_TYPE];
  const authorId = document[AUTHOR_ID];
  return {
    askedInTurnId,
    pendingId,
    messageIds,
    answerer: {
      authorType: authorType === 'agent' || authorType === 'system' ? authorType : 'user',
      authorId: typeof authorId === 'string' ? authorId : '',
    },
  };
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function without(metadata: string, keys: readonly string[]): Metadata {
  return Object.fromEntries(Object.entries(jsonObject(metadata)).filter(([key]) => !keys.includes(key)));
}
