/**
 * Who is calling. `unscoped` is internal code, or everybody while authentication is off; it is authorised for
 * everything (A4). An `agent` is one session's own agent and reaches nothing but that session.
 */
export type Caller =
  | { readonly kind: 'unscoped' }
  | { readonly kind: 'user'; readonly userId: string; readonly userName: string; readonly tokenId: string }
  | { readonly kind: 'agent'; readonly sessionId: string };

export const UNSCOPED: Caller = { kind: 'unscoped' };
