import type { Dialect } from '../../persistence/dialect.js';
import type { SqlExecutor, Tx } from '../../persistence/unit-of-work.js';
import { isReservation } from '../../tasks/persistence/current-turn.predicate.js';
import { isNotNotedSuperseded, isPendingRow } from './active-bundle.predicate.js';

/*
 * `superseded_by` notes on a pending row which newer turn of its session superseded it. Whoever looks for open questions
 * of all sessions skips rows with a note by their index; whether a row is active is never asked of it.
 *
 * A note that is missing costs time alone, so nothing depends on when it is written. One that is wrong would hide an open
 * question, so it names a turn that is there to stay: not one that is reserved for a dispatch, which may be withdrawn
 * even after it was attempted. Should the turn go all the same, by whatever hand, the database takes the note with it. A
 * note is never renewed and never moved; all of them may be cleared at any time, and the next start writes them again.
 */

/**
 * Notes on the questions that are open in a turn that a newer one has just followed. The caller has opened it, in this
 * transaction and under the session's lock.
 */
export async function noteSuperseded(tx: Tx, turnId: string, by: string): Promise<void> {
  await tx.query(
    `UPDATE task_session_messages AS m SET superseded_by = $2
     WHERE m.turn_id = $1 AND ${isPendingRow(tx.dialect, 'm')} AND ${isNotNotedSuperseded('m')}`,
    [turnId, by],
  );
}

/** The newest turn of a row's session that is there to stay, if it is newer than the row's own; NULL otherwise. */
function successorOf(dialect: Dialect, row: string): string {
  return `(SELECT st.id FROM task_session_turns st
    WHERE st.task_session_id = ${row}.task_session_id AND NOT ${isReservation(dialect, 'st')}
      AND (st.started_at, st.created_at, st.id) >
        (SELECT ot.started_at, ot.created_at, ot.id FROM task_session_turns ot WHERE ot.id = ${row}.turn_id)
    ORDER BY st.started_at DESC, st.created_at DESC, st.id DESC LIMIT 1)`;
}

function unnotedRows(dialect: Dialect, limit: number): string {
  return `SELECT p.id, ${successorOf(dialect, 'p')} AS successor FROM task_session_messages p
    ${dialect.byIndex('idx_messages_open_bundles')} WHERE ${isNotNotedSuperseded('p')} AND ${isPendingRow(dialect, 'p')} AND ${successorOf(dialect, 'p')} IS NOT NULL
    LIMIT ${Number(limit)}`;
}

/** Whether there are superseded rows without a note: of an older version, or of another hand. */
export async function hasUnnotedRows(sql: SqlExecutor): Promise<boolean> {
  return (await sql.query(unnotedRows(sql.dialect, 1))).rows.length > 0;
}

/**
 * Writes the notes that are missing, in one statement. Killed before COMMIT, they are missing still.
 * @returns how many it wrote: fewer than `limit` when none is missing any more
 */
export async function noteUnnotedRows(tx: Tx, limit: number): Promise<number> {
  const { affected } = await tx.query(
    `UPDATE task_session_messages SET superseded_by = unnoted.successor
     FROM (${unnotedRows(tx.dialect, limit)}) AS unnoted WHERE task_session_messages.id = unnoted.id`,
  );
  return affected;
}
