import { assertNever } from '../common/assert-never.js';
import type { Envelope, StreamedEvent } from './envelope.js';

/** How long a client should wait before it connects again. */
const RETRY_MS = 2_000;

/** An event as the stream has it: ids and states, and no text of anybody's. */
export function eventText(id: string, envelope: Envelope): string {
  const { event, home, pendingAction, revision } = envelope;
  const data = {
    task_id: event.taskId,
    ...(typeof home === 'object' && { workspace_id: home.workspaceId }),
    session_id: event.sessionId,
    ...subjectOf(event),
    ...(pendingAction !== undefined && { pending_action: pendingAction }),
    pending_action_revision: revision,
  };
  return `id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Something was missed: read again whatever is shown. */
export function resyncText(id: string): string {
  return `id: ${id}\nevent: resync\ndata: {}\n\n`;
}

/** Without an event, so that a client that connects again before its first one misses nothing either. */
export function openingText(id: string): string {
  return `: open\nretry: ${RETRY_MS}\nid: ${id}\n\n`;
}

/** @param id where the client has come to, when it does not know */
export function heartbeatText(id?: string): string {
  return id === undefined ? ': heartbeat\n\n' : `: heartbeat\nid: ${id}\n\n`;
}

function subjectOf(event: StreamedEvent): Readonly<Record<string, string>> {
  switch (event.type) {
    case 'session.message.added':
    case 'session.message.updated':
      return { message_id: event.messageId };
    case 'turn.started':
    case 'turn.completed':
      return { turn_id: event.turnId };
    case 'session.state_changed':
      return { state: event.state };
    case 'clarification.resolved':
      return { pending_id: event.pendingId, status: event.status, actor: event.actor, surface: event.surface };
    case 'clarification.requested':
    case 'clarification.restored':
    case 'clarification.detached':
    case 'clarification.expired':
    case 'clarification.cancelled':
      return { pending_id: event.pendingId };
    default:
      return assertNever(event);
  }
}
