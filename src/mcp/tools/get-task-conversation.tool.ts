import type { Deadline } from '../../common/deadline.js';
import { schemaOf } from '../../common/input/schema-of.js';
import type { Caller } from '../../identity/caller.js';
import { ConversationInput } from '../../tasks/inputs.js';
import { given } from '../../tasks/page.js';
import { MessagePageView } from '../../tasks/views.js';
import { toolInputAfterAccess } from './tool-input.js';
import type { Tool } from './tool.js';

export interface ConversationReading {
  listOfTask(
    caller: Caller,
    taskId: string,
    input: { readonly session_id?: string; readonly cursor?: string; readonly limit?: number },
    deadline: Deadline,
  ): Promise<object>;
}

export interface TaskReading {
  /** @throws NotFoundError */
  task(caller: Caller, taskId: string, deadline: Deadline): Promise<unknown>;
  /** @throws NotFoundError, also for a session of another task */
  sessionOfTask(caller: Caller, taskId: string, sessionId: string, deadline: Deadline): Promise<unknown>;
}

export function getTaskConversationTool(conversation: ConversationReading, access: TaskReading): Tool {
  return {
    name: 'get_task_conversation_kandev',
    title: "Read a task's conversation",
    description:
      "Returns the messages of a task's sessions, oldest first: what people and agents wrote, and the questions that " +
      'agents asked (type clarification_request, whose metadata holds the question, its status and its response). Read ' +
      'it to understand a pending question before you answer it.\n\n' +
      'When next_cursor is not empty there are newer messages: call again with it as cursor. session_id narrows to one ' +
      'session of the task.',
    surface: 'external',
    inputSchema: schemaOf(ConversationInput),
    outputSchema: MessagePageView,
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    handler: async (raw, call) => {
      const { caller, deadline } = call;
      const { task_id: taskId, ...page } = await toolInputAfterAccess(ConversationInput, raw, async (named) => {
        if (named.task_id === undefined) return;
        await access.task(caller, named.task_id, deadline);
        const sessionId = given(named.session_id);
        if (sessionId !== undefined) await access.sessionOfTask(caller, named.task_id, sessionId, deadline);
      });
      return conversation.listOfTask(caller, taskId, page, deadline);
    },
  };
}
