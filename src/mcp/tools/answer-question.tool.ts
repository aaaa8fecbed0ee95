import { Type } from 'typebox';
import type { Response } from '../../clarification/domain/bundle.js';
import { OUTCOME_SCHEMA } from '../../clarification/domain/outcome-input.js';
import { ResolutionView } from '../../clarification/schemas.js';
import type { Deadline } from '../../common/deadline.js';
import { IdField } from '../../common/input/fields.js';
import type { ObjectSchema } from '../../common/input/field-rules.js';
import { schemaOf } from '../../common/input/schema-of.js';
import type { Caller } from '../../identity/caller.js';
import { toolInput } from './tool-input.js';
import type { Tool } from './tool.js';

export interface Answering {
  resolveBundle(
    caller: Caller,
    pendingId: string,
    outcome: unknown,
    how: { readonly surface: 'rest' | 'mcp'; readonly deadline: Deadline },
  ): Promise<{
    readonly claimed: boolean;
    readonly delivered: boolean;
    readonly status: 'answered' | 'rejected';
    readonly response: Response;
  }>;
}

class AnsweredBundle {
  @IdField({
    description: 'The pending_id of the bundle, as list_pending_questions_kandev gives it.',
    example: '0b8f0c9e-4a53-4c43-9a6d-0d4f6b1f7a11',
  })
  pending_id!: string;
}

const bundle = schemaOf(AnsweredBundle);

/** The outcome that REST takes as a body, with the id that is in its path there. */
const INPUT_SCHEMA: ObjectSchema = {
  ...OUTCOME_SCHEMA,
  properties: { ...bundle.properties, ...OUTCOME_SCHEMA.properties },
  required: [...bundle.required, ...OUTCOME_SCHEMA.required],
};

/** REST also says `success`, which a tool's result does by not being an error. */
const { success: _, ...resolution } = ResolutionView.properties;
const OUTPUT_SCHEMA = Type.Object(resolution, { additionalProperties: false });

export function answerQuestionTool(resolver: Answering): Tool {
  return {
    name: 'answer_question_kandev',
    title: 'Answer or decline a pending question',
    description:
      'Answers one pending bundle of questions, or declines it, for good: the agent that asked gets it and goes on. ' +
      'Find bundles with list_pending_questions_kandev.\n\n' +
      'To answer, give answers with exactly one entry for each question of the bundle: its question_id and, as you ' +
      'like, selected_options (option_id values of that question, any number of them), custom_text, both or neither. ' +
      'To decline the whole bundle give rejected: true and, if you like, reject_reason, and no answers.\n\n' +
      'The first answer wins. claimed: true means that yours was recorded. claimed: false means that somebody else ' +
      'was first: status and response tell what they decided, and yours changed nothing. response always has answers, ' +
      'rejected, reject_reason and responded_at. An error beginning with not_active means that the question is no ' +
      'longer open and nobody answered it; not_found, that there is none of that id that you may see; ' +
      'validation_failed names the field to correct. After any other error or a lost connection send the same call ' +
      'again: it cannot count twice.',
    surface: 'external',
    inputSchema: INPUT_SCHEMA,
    outputSchema: OUTPUT_SCHEMA,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    handler: async (raw, call) => {
      const { pending_id: pendingId, ...outcome } = membersOf(raw);
      if (typeof pendingId !== 'string') {
        // Says what is wrong with it, in the words that every input gets.
        toolInput(AnsweredBundle, pendingId === undefined ? {} : { pending_id: pendingId });
        throw new Error('a pending_id that is no text passed validation');
      }
      const { claimed, delivered, status, response } = await resolver.resolveBundle(call.caller, pendingId, outcome, {
        surface: 'mcp',
        deadline: call.deadline,
      });
      return { claimed, delivered, status, response };
    },
  };
}

/** The SDK has seen to it that the arguments are an object. */
function membersOf(raw: unknown): Record<string, unknown> {
  return raw as Record<string, unknown>;
}
