import { BooleanField, ListField, TextField } from '../../common/input/fields.js';
import type { ObjectSchema } from '../../common/input/field-rules.js';
import { schemaOf } from '../../common/input/schema-of.js';
import { validateInput } from '../../common/input/validate-input.js';

/** Unicode code points of the raw `custom_text` and `reject_reason`, before anything is trimmed (N8b). */
const MAX_ANSWER_TEXT = 2000;
/** Far above what a bundle can ask: these only bound the work. How many there must be is N6, and N8 asks nothing. */
const MAX_ANSWERS = 100;
const MAX_SELECTED_OPTIONS = 100;

export class AnswerInput {
  @TextField({ min: 1, description: 'The id of the question that this entry answers.', example: 'q1' })
  question_id!: string;

  @ListField('text', {
    max: MAX_SELECTED_OPTIONS,
    optional: true,
    description: 'Ids of the chosen options of this question: none, one or several.',
    example: ['q1_opt2'],
  })
  selected_options?: string[];

  @TextField({
    max: MAX_ANSWER_TEXT,
    optional: true,
    description: `Free text beside or instead of options, at most ${MAX_ANSWER_TEXT} characters.`,
    example: 'But only for new users.',
  })
  custom_text?: string;
}

/** An outcome whose shape is right. Whether it fits a bundle is for `validateOutcome` to say. */
export class OutcomeInput {
  @ListField(() => AnswerInput, {
    max: MAX_ANSWERS,
    optional: true,
    description:
      'Exactly one entry per question of the bundle. An entry with neither options nor text leaves its question unanswered.',
  })
  answers?: AnswerInput[];

  @BooleanField({ optional: true, description: 'true declines the whole bundle; then no answers may be given.' })
  rejected?: boolean;

  @TextField({
    max: MAX_ANSWER_TEXT,
    optional: true,
    description: `Why the bundle is declined, at most ${MAX_ANSWER_TEXT} characters. Only together with rejected: true.`,
  })
  reject_reason?: string;
}

const shape = schemaOf(OutcomeInput);

/**
 * The shape of an outcome as a closed JSON Schema, the same for REST and MCP. It accepts exactly the JSON that
 * {@link readOutcomeInput} accepts. The pending id is not part of it.
 */
export const OUTCOME_SCHEMA: ObjectSchema = {
  ...shape,
  properties: {
    ...shape.properties,
    // Any JSON at all, so no field decorator describes it (A8).
    task_id: { description: 'Accepted and ignored: the task is known from the bundle.' },
  },
};

/** @throws ValidationError naming the path of an offending field, and nothing else, on any JSON value */
export function readOutcomeInput(raw: unknown): OutcomeInput {
  return validateInput(OutcomeInput, withoutTaskId(raw), 'outcome');
}

function withoutTaskId(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return raw;
  const { task_id: _, ...outcome } = raw as Record<string, unknown>;
  return outcome;
}
