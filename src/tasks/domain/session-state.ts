import { ConflictError } from '../../common/domain-error.js';

export const SESSION_STATES = ['created', 'running', 'waiting_for_input', 'completed', 'failed', 'cancelled'] as const;

export type SessionState = (typeof SESSION_STATES)[number];

/** Final: a session never leaves one of these. */
export const TERMINAL_SESSION_STATES = ['completed', 'failed', 'cancelled'] as const satisfies readonly SessionState[];

export function isTerminal(state: string): boolean {
  return (TERMINAL_SESSION_STATES as readonly string[]).includes(state);
}

/** @throws ConflictError when the session has ended */
export function refuseEnded(session: { readonly state: string }): void {
  if (isTerminal(session.state)) throw new ConflictError(`session is ${session.state}, which is final`);
}
