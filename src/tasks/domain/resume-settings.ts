/** How an answer reaches an agent that is not waiting. */
export interface ResumeSettings {
  readonly mode: 'pull';
}

export const DEFAULT_RESUME: ResumeSettings = { mode: 'pull' };
