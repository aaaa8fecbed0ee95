interface InSession {
  readonly taskId: string;
  readonly sessionId: string;
}

interface OfBundle extends InSession {
  readonly pendingId: string;
}

/** Ids only: an event carries nobody's words, so that filtering it for a caller is a pure function. */
export type DomainEvent =
  | (InSession & { readonly type: 'session.message.added' | 'session.message.updated'; readonly messageId: string })
  | (InSession & { readonly type: 'turn.started' | 'turn.completed'; readonly turnId: string })
  /** The state in the words of the feature that has sessions: events know no feature. */
  | (InSession & { readonly type: 'session.state_changed'; readonly state: string })
  | (OfBundle & {
      readonly type:
        | 'clarification.requested'
        | 'clarification.restored'
        | 'clarification.detached'
        | 'clarification.expired'
        | 'clarification.cancelled';
    })
  | (OfBundle & {
      readonly type: 'clarification.resolved';
      readonly status: 'answered' | 'rejected';
      /** Who answered, as `user:<id>` or `unscoped`, and through which surface. */
      readonly actor: string;
      readonly surface: string;
    })
  /** Inside the process only: everything of these sessions is gone. */
  | { readonly type: 'task.deleted'; readonly taskId: string; readonly sessionIds: readonly string[] };
