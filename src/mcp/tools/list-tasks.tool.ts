import type { Deadline } from '../../common/deadline.js';
import { schemaOf } from '../../common/input/schema-of.js';
import type { Caller } from '../../identity/caller.js';
import { ListTasksInput } from '../../tasks/inputs.js';
import { TaskPageView } from '../../tasks/views.js';
import { toolInput } from './tool-input.js';
import type { Tool } from './tool.js';

export interface TaskListing {
  list(caller: Caller, input: ListTasksInput, deadline: Deadline): Promise<object>;
}

export function listTasksTool(tasks: TaskListing): Tool {
  return {
    name: 'list_tasks_kandev',
    title: 'List tasks',
    description:
      'Lists the tasks that you may see. task_pending_action is "clarification" while an agent working on the task ' +
      'waits for somebody to answer a question, and null otherwise; primary_session_pending_action says the same of ' +
      "the task's main agent session. Use list_pending_questions_kandev to read such questions, and " +
      "get_task_conversation_kandev with a task's id to read what has been said in it.\n\n" +
      'When next_cursor is not empty there are more: call again with it as cursor. workspace_id narrows the list to ' +
      'one workspace of list_workspaces_kandev.',
    surface: 'external',
    inputSchema: schemaOf(ListTasksInput),
    outputSchema: TaskPageView,
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    handler: (raw, call) => tasks.list(call.caller, toolInput(ListTasksInput, raw), call.deadline),
  };
}
