/** How a turn with a prompt reaches an agent that did not open it itself. */
export type ResumeSettings =
  /** The agent fetches it from its mailbox. */
  | { readonly mode: 'pull' }
  /** It is sent to the agent. The secret is `whsec_` and base64 of 24 to 64 bytes. */
  | { readonly mode: 'webhook'; readonly url: string; readonly secret: string };

export const DEFAULT_RESUME: ResumeSettings = { mode: 'pull' };

/** As `task_sessions.resume` holds it; text that cannot be read counts as the default, which loses nothing. */
export function readResumeSettings(stored: string): ResumeSettings {
  let read: unknown;
  try {
    read = JSON.parse(stored);
  } catch {
    return DEFAULT_RESUME;
  }
  if (typeof read !== 'object' || read === null) return DEFAULT_RESUME;
  const { mode, url, secret } = read as Record<string, unknown>;
  if (mode !== 'webhook' || typeof url !== 'string' || typeof secret !== 'string') return DEFAULT_RESUME;
  return { mode, url, secret };
}
