import { TERMINAL_SESSION_STATES } from '../domain/session-state.js';

const TERMINAL = TERMINAL_SESSION_STATES.map((state) => `'${state}'`).join(', ');

/** The session that `sessionId` (a column) names exists and has not reached a final state. */
export function isSessionOpen(sessionId: string): string {
  return `COALESCE((SELECT os.state FROM task_sessions os WHERE os.id = ${sessionId}), '') NOT IN ('', ${TERMINAL})`;
}
