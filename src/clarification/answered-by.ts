import type { Caller } from '../identity/caller.js';

export type Surface = 'rest' | 'mcp';

/** Who answered and through which surface. */
export interface AnsweredBy {
  readonly caller: Caller;
  readonly surface: Surface;
}

/** A name for logs and events: never a token, never a person's words. */
export function actorOf(caller: Caller): string {
  switch (caller.kind) {
    case 'user':
      return `user:${caller.userId}`;
    case 'agent':
      return `agent:${caller.sessionId}`;
    case 'unscoped':
      return 'unscoped';
  }
}
