/** What an agent is told when it is called, beside the id of the call. */
export interface AgentNews {
  readonly sessionId: string;
  readonly taskId: string;
  readonly turnId: string;
  readonly prompt: string;
  /** The answer that the turn carries; another prompt has none. */
  readonly answered?: AnsweredQuestion;
}

export interface AnsweredQuestion {
  readonly pendingId: string;
  /** As everybody is told it; left out when it is not known any more. */
  readonly response?: object;
}

/** The JSON of a call. Written once and kept, so that each repetition has the same bytes. */
export function callBody({ sessionId, taskId, turnId, prompt, answered }: AgentNews): string {
  return JSON.stringify({
    type: answered === undefined ? 'turn.prompted' : 'clarification.answered',
    session_id: sessionId,
    task_id: taskId,
    turn_id: turnId,
    pending_id: answered?.pendingId,
    prompt,
    response: answered?.response,
  });
}
