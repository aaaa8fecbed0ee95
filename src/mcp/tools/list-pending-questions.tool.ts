import { ListBundlesInput } from '../../clarification/inputs.js';
import { BundlePageView } from '../../clarification/schemas.js';
import type { Deadline } from '../../common/deadline.js';
import { schemaOf } from '../../common/input/schema-of.js';
import type { Caller } from '../../identity/caller.js';
import { toolInput } from './tool-input.js';
import type { Tool } from './tool.js';

export interface PendingListing {
  list(caller: Caller, input: ListBundlesInput, deadline: Deadline): Promise<object>;
}

export function listPendingQuestionsTool(listing: PendingListing): Tool {
  return {
    name: 'list_pending_questions_kandev',
    title: 'List pending questions',
    description:
      'Lists the questions that agents have asked and nobody has answered yet, oldest first: everything that you may ' +
      'see. Each entry is a bundle of one to four questions that are answered together with answer_question_kandev; it ' +
      'has its pending_id, task_id, session_id, created_at, age_seconds, the context that the agent gave, and the ' +
      'questions with their option_id values, labels and descriptions.\n\n' +
      'An empty list means that nothing waits. When next_cursor is not empty there are more: call again with it as ' +
      'cursor. workspace_id and created_since narrow the list.',
    surface: 'external',
    inputSchema: schemaOf(ListBundlesInput),
    outputSchema: BundlePageView,
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    handler: (raw, call) => listing.list(call.caller, toolInput(ListBundlesInput, raw), call.deadline),
  };
}
