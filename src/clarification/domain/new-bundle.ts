import { ValidationError } from '../../common/domain-error.js';
import { ListField, TextField } from '../../common/input/fields.js';
import { codePointLength } from '../../common/text.js';
import { inD2Order, type BundleRow, type Question, type QuestionOption } from './bundle.js';

const MIN_QUESTIONS = 1;
const MAX_QUESTIONS = 4;
/** Free text can always be given beside the options, so a question without any is refused on purpose. */
const MIN_OPTIONS = 2;
const MAX_OPTIONS = 6;
/** Bounds of texts in Unicode code points: what a person can read on one screen, and a page of context. */
const MAX_TITLE = 200;
const MAX_PROMPT = 4000;
const MAX_LABEL = 200;
const MAX_DESCRIPTION = 1000;
export const MAX_CONTEXT = 16_000;
export const MAX_CONTEXT_PARAGRAPHS = 100;

/** Names that an agent's result or a JavaScript object already gives a meaning. */
export const RESERVED_QUESTION_IDS: readonly string[] = [
  'rejected',
  'reject_reason',
  'status',
  'pending_id',
  '__proto__',
  'constructor',
  'prototype',
];

const ID = {
  pattern: '^[A-Za-z0-9_.-]{1,64}$',
  patternHint: 'be 1 to 64 of the characters A-Z a-z 0-9 _ . -',
} as const;

class OptionInput {
  @TextField({
    ...ID,
    optional: true,
    description: 'Unique within the question; q1_opt1, q1_opt2 … of the first question when left out.',
    example: 'q1_opt1',
  })
  option_id?: string;

  @TextField({ blank: false, max: MAX_LABEL, description: 'The choice in a few words.', example: 'PostgreSQL' })
  label!: string;

  @TextField({
    max: MAX_DESCRIPTION,
    optional: true,
    description: 'What choosing it means.',
    example: 'Several writers, a server to run.',
  })
  description?: string;
}

export class QuestionInput {
  @TextField({
    ...ID,
    optional: true,
    description: `Unique within the bundle; q1, q2 … when left out. Not one of ${RESERVED_QUESTION_IDS.join(', ')}.`,
    example: 'q1',
  })
  id?: string;

  @TextField({ max: MAX_TITLE, optional: true, description: 'A short heading.', example: 'Database' })
  title?: string;

  @TextField({ blank: false, max: MAX_PROMPT, description: 'The question.', example: 'Which database shall I use?' })
  prompt!: string;

  @ListField(() => OptionInput, {
    min: MIN_OPTIONS,
    max: MAX_OPTIONS,
    description: 'The choices. Free text can be given beside or instead of them, so "other" is not needed.',
  })
  options!: OptionInput[];
}

/** What every surface that asks takes. */
export class BundleInput {
  @ListField(() => QuestionInput, {
    min: MIN_QUESTIONS,
    max: MAX_QUESTIONS,
    description: 'One to four questions that are answered together.',
  })
  questions!: QuestionInput[];

  @TextField({
    max: MAX_CONTEXT,
    optional: true,
    description: 'What somebody who has not followed the work needs to know to answer.',
    example: 'The service stores about a million rows.',
  })
  context?: string;
}

/**
 * The questions with all ids and texts filled in. Assigned ids go by position (`q2`, `q2_opt1`), so that the same
 * request always asks the same; one that is already taken is an error, like any other repetition.
 *
 * @throws ValidationError naming the path, e.g. `questions[1].options[0].option_id`
 */
export function completeQuestions(inputs: readonly QuestionInput[]): Question[] {
  const ids = new Set<string>();
  return inputs.map((input, index) => {
    const path = `questions[${index}]`;
    const id = input.id ?? `q${index + 1}`;
    if (RESERVED_QUESTION_IDS.includes(id))
      throw new ValidationError(`${path}.id`, `must not be ${id}: it is reserved`);
    if (ids.has(id)) throw new ValidationError(`${path}.id`, repetition(id, input.id, 'question of this request'));
    ids.add(id);
    return {
      id,
      title: input.title ?? '',
      prompt: input.prompt,
      options: completeOptions(input.options, `q${index + 1}`, path),
    };
  });
}

function completeOptions(inputs: readonly OptionInput[], prefix: string, path: string): QuestionOption[] {
  const ids = new Set<string>();
  return inputs.map((input, index) => {
    const id = input.option_id ?? `${prefix}_opt${index + 1}`;
    if (ids.has(id)) {
      throw new ValidationError(
        `${path}.options[${index}].option_id`,
        repetition(id, input.option_id, 'option of this question'),
      );
    }
    ids.add(id);
    return { option_id: id, label: input.label, description: input.description ?? '' };
  });
}

function repetition(id: string, given: string | undefined, owner: string): string {
  const problem = `is already the id of another ${owner}`;
  return given === undefined ? `must be given, because ${id}, which it would get, ${problem}` : `${id} ${problem}`;
}

/**
 * Whether the rows ask exactly this: the same questions in the same order with the same context, after defaults.
 * Two equal requests of one turn are one bundle.
 */
export function sameRequest(rows: readonly BundleRow[], questions: readonly Question[], context: string): boolean {
  return (
    rows.every((row) => row.context === context) &&
    fingerprint(inD2Order(rows).map((row) => row.question)) === fingerprint(questions)
  );
}

function fingerprint(questions: readonly Question[]): string {
  return JSON.stringify(
    questions.map(({ id, title, prompt, options }) => [
      id,
      title,
      prompt,
      options.map(({ option_id, label, description }) => [option_id, label, description]),
    ]),
  );
}

/**
 * The context of an ask. Paragraphs replace it, joined by blank lines, unless all of them are blank: then nothing
 * would be left of it.
 *
 * @throws ValidationError naming context_paragraphs when the whole is longer than {@link MAX_CONTEXT}
 */
export function contextFrom(input: { context?: string; context_paragraphs?: readonly string[] }): string {
  const paragraphs = (input.context_paragraphs ?? []).filter((paragraph) => paragraph.trim() !== '');
  if (paragraphs.length === 0) return input.context ?? '';
  const context = paragraphs.join('\n\n');
  if (codePointLength(context) > MAX_CONTEXT) {
    throw new ValidationError('context_paragraphs', `must not be longer than ${MAX_CONTEXT} characters together`);
  }
  return context;
}
