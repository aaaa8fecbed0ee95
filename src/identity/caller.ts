import type { Instant } from '../common/clock.js';

/**
 * Who is calling. `unscoped` is internal code, or everybody while authentication is off; it is authorised for
 * everything (A4). An `agent` is one session's own agent and reaches nothing but that session.
 *
 * `tokenId` names the token that proved it and is safe to log: a user's is a row id, an agent's a prefix of the stored
 * hash. `expiresAt` is absent when the token never expires.
 */
export type Caller =
  | { readonly kind: 'unscoped' }
  | {
      readonly kind: 'user';
      readonly userId: string;
      readonly userName: string;
      readonly tokenId: string;
      readonly expiresAt?: Instant;
    }
  | { readonly kind: 'agent'; readonly sessionId: string; readonly tokenId: string };

export const UNSCOPED: Caller = { kind: 'unscoped' };
