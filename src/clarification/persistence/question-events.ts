import type { DomainEvent } from '../../events/domain-event.js';
import type { BundleRow } from '../domain/bundle.js';

/** Told of rows that have been moved, whatever the move. */
export function questionsUpdated(rows: readonly BundleRow[]): DomainEvent[] {
  return rows.map((row) => ({
    type: 'session.message.updated',
    taskId: row.taskId,
    sessionId: row.sessionId,
    messageId: row.id,
  }));
}
