import type { Dialect } from '../../persistence/dialect.js';
import { currentTurnId } from '../../tasks/persistence/current-turn.predicate.js';
import { isSessionOpen } from '../../tasks/persistence/terminal-session.predicate.js';

/** The bundle that a message row belongs to, as an SQL text value. */
export function pendingIdOf(dialect: Dialect, row: string): string {
  return dialect.metadataText(`${row}.metadata`, 'pending_id');
}

/** The row is one of the bundle's: the number 5 is not the name '5', though PostgreSQL gives the same text for both. */
export function isRowOfBundle(dialect: Dialect, row: string, pendingId: string): string {
  return `${pendingIdOf(dialect, row)} = ${pendingId}
    AND ${dialect.metadataIsNonEmptyText(`${row}.metadata`, 'pending_id')}`;
}

/**
 * The row is a question whose status is absent, empty or `pending`, of a bundle that somebody can name: the text of a
 * part of the open-bundle indexes' condition.
 */
export function isPendingRow(dialect: Dialect, row: string): string {
  return `${row}.type = 'clarification_request'
    AND COALESCE(${dialect.metadataText(`${row}.metadata`, 'status')}, '') IN ('', 'pending')
    AND ${dialect.metadataIsId(`${row}.metadata`, 'pending_id')}`;
}

/**
 * THE activeness rule (D4), true for each pending row of an active bundle; a bundle is active when it has one. The row
 * is pending, its session has not ended, its turn is the session's current one, and no row of its bundle has another
 * type, session or turn. `row` is an alias of task_session_messages.
 *
 * The claim, the listing, the workflow guard, detach, expire, cancel and every pending-action field ask this and
 * nothing else.
 *
 * @param further a condition more, asked only of rows for which all this holds
 */
export function isActiveBundleRow(dialect: Dialect, row: string, further = 'TRUE'): string {
  // In this order: most pending rows that are not active are superseded ones, and nothing more need be known of those.
  return `${isPendingRow(dialect, row)}
    AND CASE WHEN ${row}.turn_id = ${currentTurnId(dialect, `${row}.task_session_id`)}
      THEN ${isSessionOpen(`${row}.task_session_id`)}
        AND NOT EXISTS (SELECT 1 FROM task_session_messages odd
          WHERE ${isRowOfBundle(dialect, 'odd', pendingIdOf(dialect, row))}
            AND (odd.type <> 'clarification_request' OR odd.task_session_id <> ${row}.task_session_id
              OR odd.turn_id <> ${row}.turn_id)${dialect.rowByRow})
        AND ${further}
      ELSE FALSE END`;
}

/**
 * It is not noted on the row that a newer turn has superseded it (see `note-superseded.tx`): the rest of those indexes'
 * condition. Whoever reads every session's open questions asks this first, to meet few others; true of many rows that are
 * superseded all the same, and so no part of the rule above.
 */
export function isNotNotedSuperseded(row: string): string {
  return `${row}.superseded_by IS NULL`;
}

/** The row belongs to the current turn of `sessionId`, a column or placeholder: met by the index of that turn's. */
export function isOfCurrentTurn(dialect: Dialect, row: string, sessionId: string): string {
  return `${row}.task_session_id = ${sessionId} AND ${row}.turn_id = ${currentTurnId(dialect, sessionId)}`;
}

/**
 * The row is claimed in its session's current turn and its hand-over not settled: it may still become pending again, or
 * resume its agent in a new turn.
 */
export function isOwedRow(dialect: Dialect, row: string): string {
  return `${row}.type = 'clarification_request'
    AND ${dialect.metadataFlag(`${row}.metadata`, 'response_delivery_pending')}
    AND ${dialect.metadataText(`${row}.metadata`, 'status')} IN ('answered', 'rejected')
    AND ${dialect.metadataIsId(`${row}.metadata`, 'pending_id')}
    AND ${isSessionOpen(`${row}.task_session_id`)}
    AND ${row}.turn_id = ${currentTurnId(dialect, `${row}.task_session_id`)}`;
}
