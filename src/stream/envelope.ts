import type { DomainEvent } from '../events/domain-event.js';
import type { Caller } from '../identity/caller.js';
import { isVisibleHome, type TaskHome } from '../tasks/persistence/visible-tasks.predicate.js';
import type { PendingActionRevision } from '../tasks/views.js';

/** What callers hear of: everything but what concerns this process only. */
export type StreamedEvent = Exclude<DomainEvent, { type: 'task.deleted' }>;

/** A committed event with what was found about it afterwards. */
export interface Envelope {
  readonly event: StreamedEvent;
  /** Where its task is; `missing` when the task is gone, `unknown` when that could not be read. */
  readonly home: TaskHome | 'missing' | 'unknown';
  /** Of its session, as of the revision; undefined when it could not be read. */
  readonly pendingAction: 'clarification' | null | undefined;
  readonly revision: PendingActionRevision;
}

/**
 * Who hears what: whoever may see the task, and an agent what happens in its own session. A pure function, so that it
 * works wherever an envelope has come to. A user for whom it cannot be told is asked to look again.
 */
export function hears(caller: Caller, { event, home }: Envelope): 'event' | 'resync' | 'nothing' {
  if (caller.kind === 'unscoped') return 'event';
  if (caller.kind === 'agent') return event.sessionId === caller.sessionId ? 'event' : 'nothing';
  if (home === 'unknown') return 'resync';
  return home !== 'missing' && isVisibleHome(caller, home) ? 'event' : 'nothing';
}
