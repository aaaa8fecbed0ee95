import type { Deadline } from '../../common/deadline.js';
import { IntegerField, TextField } from '../../common/input/fields.js';
import { schemaOf } from '../../common/input/schema-of.js';
import type { Caller } from '../../identity/caller.js';
import { BundlePage } from './clarification-schemas.js';
import { toolInput } from './tool-input.js';
import type { Tool } from './tool.js';

export class ListPendingInput {
  @TextField({ optional: true, description: 'Only bundles of tasks in this workspace.' })
  workspace_id?: string;

  @TextField({
    optional: true,
    description: 'Only bundles created at this instant or later: an RFC 3339 date and time with offset.',
    example: '2026-01-31T09:00:00Z',
  })
  created_since?: string;

  @TextField({ optional: true, description: 'The next_cursor of the page before.' })
  cursor?: string;

  @IntegerField({ optional: true, description: 'How many at most: 50 unless given, never above 200.', default: 50 })
  limit?: number;
}

export interface PendingListing {
  list(caller: Caller, input: ListPendingInput, deadline: Deadline): Promise<object>;
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
    inputSchema: schemaOf(ListPendingInput),
    outputSchema: BundlePage,
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    handler: (raw, call) => listing.list(call.caller, toolInput(ListPendingInput, raw), call.deadline),
  };
}
