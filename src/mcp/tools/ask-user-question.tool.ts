import {
  BundleInput,
  contextFrom,
  MAX_CONTEXT,
  MAX_CONTEXT_PARAGRAPHS,
} from '../../clarification/domain/new-bundle.js';
import type { QuestionInput } from '../../clarification/domain/new-bundle.js';
import type { Deadline } from '../../common/deadline.js';
import { IntegerField, ListField } from '../../common/input/fields.js';
import { schemaOf } from '../../common/input/schema-of.js';
import { toolInput } from './tool-input.js';
import type { Caller } from '../../identity/caller.js';
import {
  AGENT_WAIT_SCHEMA,
  ASK_TOOL,
  isWaiting,
  sessionOf,
  TIMEOUT_FIELD,
  WAIT_TOOL,
  waitForAgent,
} from './agent-wait.js';
import type { ResponseWait } from './agent-wait.js';
import type { Tool } from './tool.js';

/** What asking needs of the clarification feature: the same request again is the same bundle. */
export interface Asking {
  create(
    caller: Caller,
    input: { readonly session_id: string; readonly questions: QuestionInput[]; readonly context?: string },
    deadline: Deadline,
  ): Promise<{ readonly pending_id: string }>;
}

class AskInput extends BundleInput {
  @ListField('text', {
    max: MAX_CONTEXT_PARAGRAPHS,
    item: { max: MAX_CONTEXT },
    optional: true,
    description: 'The context as a list of paragraphs. When it is not empty it is used in place of context.',
    example: ['The service stores about a million rows.', 'It runs on one machine.'],
  })
  context_paragraphs?: string[];

  @IntegerField(TIMEOUT_FIELD)
  timeout_seconds?: number;
}

export function askUserQuestionTool(requests: Asking, waits: ResponseWait): Tool {
  return {
    name: ASK_TOOL,
    title: 'Ask a person a question',
    description:
      'Asks the people responsible for this task one to four multiple-choice questions and waits for their answer. Use ' +
      'it when you cannot go on well without a decision that is not yours to make; put questions that belong together ' +
      'into one call. Each question has a prompt and two to six options; whoever answers may choose any number of ' +
      'options, write text instead, do both, or decline. Write the prompt and the option descriptions, or the context, ' +
      'so that somebody who has not followed your work can answer.\n\n' +
      'Returns an object with one entry for each question id: selected_options (ids), selected_labels, custom_text and ' +
      'answered. When the questions were declined it returns {"rejected":true,"reject_reason":"…"}: go on without the ' +
      'answer as well as you can. When nobody has answered by the time this call must end, it returns ' +
      `{"status":"pending","pending_id":"…","next":"…"}: the questions stay open; call ${WAIT_TOOL} with that ` +
      'pending_id to wait on. Should the call fail or be cut off, just make the same call again: the same questions ' +
      'with the same context are not asked twice. An error beginning with not_active means that the questions can no ' +
      'longer be answered.',
    surface: 'session',
    inputSchema: schemaOf(AskInput),
    outputSchema: AGENT_WAIT_SCHEMA,
    // Idempotent within a turn: asking again what is still open rejoins it.
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    holds: isWaiting,
    handler: async (raw, call) => {
      const sessionId = sessionOf(call);
      const input = toolInput(AskInput, raw);
      const { pending_id } = await requests.create(
        call.caller,
        { session_id: sessionId, questions: input.questions, context: contextFrom(input) },
        call.deadline,
      );
      return waitForAgent(waits, call, sessionId, pending_id, input.timeout_seconds);
    },
  };
}
