import { RestCaller } from './callers.js';
import { questionOf } from './question.js';

export function answersTo(ids: readonly string[], text = '', option: 'left' | 'right' = 'left') {
  return { answers: ids.map((id) => ({ question_id: id, selected_options: [option], custom_text: text })) };
}

/** A task with a session, whose agent has asked something in its first turn. Everything was made over REST. */
export interface Estate {
  readonly workspaceId: string;
  readonly taskId: string;
  readonly sessionId: string;
  readonly agentToken: string;
  readonly turnId: string;
  readonly pendingId: string;
}

/** @param owner whoever makes it; `workspaceId` is `''` for a task that everybody sees */
export async function makeEstate(
  owner: RestCaller,
  options: { readonly workspaceId?: string; readonly questions?: readonly string[] } = {},
): Promise<Estate> {
  const workspaceId = options.workspaceId ?? (await owner.make('POST', '/workspaces', { name: 'A workspace' })).id;
  const task = await owner.make('POST', '/tasks', { title: 'A task', workspace_id: workspaceId });
  const session = await owner.make('POST', `/tasks/${task.id}/sessions`, {});
  const agent = new RestCaller(owner.url, session.agent_token);
  const pendingId = await ask(agent, session.id, options.questions);
  const { turns } = await agent.make('GET', `/task-sessions/${session.id}/turns`);
  return {
    workspaceId,
    taskId: task.id,
    sessionId: session.id,
    agentToken: session.agent_token,
    turnId: turns[0].id,
    pendingId,
  };
}

/** Asks in the session's current turn. Other questions, or another context, make another bundle. */
export async function ask(
  agent: RestCaller,
  sessionId: string,
  questions: readonly string[] = ['q1'],
  context = 'because',
): Promise<string> {
  const input = { session_id: sessionId, questions: questions.map(questionOf), context };
  return (await agent.make('POST', '/clarification/request', input)).pending_id;
}
