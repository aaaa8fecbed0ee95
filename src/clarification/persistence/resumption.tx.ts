import type { Instant } from '../../common/clock.js';
import type { Deadline } from '../../common/deadline.js';
import type { Reader, UnitOfWork } from '../../persistence/unit-of-work.js';
import { hasQueuedResumption, unqueueResumption } from '../../tasks/persistence/messages.repository.js';
import { lockSession } from '../../tasks/persistence/sessions.repository.js';
import { acknowledgeMailbox, findTurnResumedFrom } from '../../tasks/persistence/turns.repository.js';

/**
 * The turn in which a bundle's answer has reached, or is about to reach, its agent. When the agent itself asks it has
 * the answer now: the turn's mailbox entry is acknowledged, or its queued prompt taken off the queue, so that it does
 * not meet the answer twice. Idempotent; killed in between, it may meet it once more and see the same turn id.
 */
export async function acknowledgeResumption(
  unitOfWork: UnitOfWork,
  reader: Reader,
  resumption: { readonly sessionId: string; readonly pendingId: string; readonly byAgent: boolean },
  deadline: Deadline,
  now: Instant,
): Promise<string | undefined> {
  const { sessionId, pendingId, byAgent } = resumption;
  const sql = reader.within(deadline);
  const turn = await findTurnResumedFrom(sql, sessionId, pendingId);
  if (!byAgent) return turn?.id;
  const isOwed = turn === undefined ? await hasQueuedResumption(sql, sessionId, pendingId) : turn.mailbox === 'waiting';
  if (!isOwed) return turn?.id;
  return unitOfWork.run('resumption.acknowledge', deadline, async (tx) => {
    await lockSession(tx, sessionId);
    const current = await findTurnResumedFrom(tx, sessionId, pendingId);
    if (current === undefined) await unqueueResumption(tx, sessionId, pendingId, now);
    else await acknowledgeMailbox(tx, sessionId, current.id, now);
    return current?.id;
  });
}
