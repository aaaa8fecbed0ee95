import { laterOf, plusMilliseconds, type Instant } from '../../common/clock.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import type { SessionRow } from '../persistence/sessions.repository.js';
import { findNewestTurn, insertTurn, type TurnRow } from '../persistence/turns.repository.js';

/**
 * The row of a session's next turn, opened or only reserved. It starts after the newest turn of any kind: a clock that
 * stepped back must not make it older than the one it follows. The caller holds the session's lock.
 */
export async function insertNextTurn(
  tx: Tx,
  session: SessionRow,
  next: { readonly id: string; readonly mailbox: TurnRow['mailbox']; readonly metadata: string },
  now: Instant,
): Promise<{ readonly turn: TurnRow; readonly follows: string | undefined }> {
  const newest = await findNewestTurn(tx, session.id);
  const turn: TurnRow = {
    id: next.id,
    task_session_id: session.id,
    task_id: session.task_id,
    started_at: newest === undefined ? now : laterOf(now, plusMilliseconds(newest.started_at, 1)),
    completed_at: null,
    mailbox: next.mailbox,
    created_at: now,
    updated_at: now,
  };
  await insertTurn(tx, turn, next.metadata);
  return { turn, follows: newest?.id };
}
