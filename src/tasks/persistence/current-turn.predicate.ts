import type { Dialect } from '../../persistence/dialect.js';

/** The turn is reserved for a dispatch whose outcome is not settled: it is not shown, and bars prompts and turns. */
export function isReservation(dialect: Dialect, turn: string): string {
  return dialect.metadataFlag(`${turn}.metadata`, 'prompt_dispatch_pending');
}

/**
 * A turn counts unless it is a pure reservation: reserved for a dispatch that was never attempted, with no message
 * referring to it. `turn` is an alias of task_session_turns.
 */
export function isAuthoritativeTurn(dialect: Dialect, turn: string): string {
  const metadata = `${turn}.metadata`;
  return `NOT (${isReservation(dialect, turn)}
    AND NOT ${dialect.metadataFlag(metadata, 'prompt_dispatch_attempted')}
    AND NOT EXISTS (SELECT 1 FROM task_session_messages rm WHERE rm.turn_id = ${turn}.id${dialect.rowByRow}))`;
}

/**
 * The id of a session's current turn as a scalar sub-query: the newest authoritative turn. Derived from the turns
 * themselves, so that deleting messages never moves it back. `sessionId` is a column or placeholder.
 */
export function currentTurnId(dialect: Dialect, sessionId: string): string {
  return `(SELECT ct.id FROM task_session_turns ct
    WHERE ct.task_session_id = ${sessionId} AND ${isAuthoritativeTurn(dialect, 'ct')}
    ORDER BY ct.started_at DESC, ct.created_at DESC, ct.id DESC LIMIT 1)`;
}
