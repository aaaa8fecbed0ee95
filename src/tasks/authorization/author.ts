import type { Caller } from '../../identity/caller.js';
import type { AuthorType } from '../persistence/messages.repository.js';

/** Who wrote a message. `asUnscoped` is the author while nobody has an identity. */
export function authorOf(caller: Caller, asUnscoped: AuthorType): { authorType: AuthorType; authorId: string } {
  switch (caller.kind) {
    case 'user':
      return { authorType: 'user', authorId: caller.userId };
    case 'agent':
      return { authorType: 'agent', authorId: caller.sessionId };
    case 'unscoped':
      return { authorType: asUnscoped, authorId: '' };
  }
}
