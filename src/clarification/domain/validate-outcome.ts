import { ValidationError } from '../../common/domain-error.js';
import type { AnswerEntry, BundleRow } from './bundle.js';
import { readOutcomeInput, type AnswerInput, type OutcomeInput } from './outcome-input.js';

/** What somebody decided about a whole bundle. */
export type Outcome =
  | { readonly kind: 'answered'; readonly answers: readonly AnswerEntry[] }
  | { readonly kind: 'rejected'; readonly reason: string };

/**
 * Decides whether `raw` is an outcome for these rows (N6–N8b, L16), before anything is claimed (N8c) and whatever
 * the state of the bundle (R2c, P2). Nothing is trimmed or reordered here.
 *
 * Every row wants its entry, one that is already terminal too (L12). A reason without `rejected: true` is refused
 * rather than dropped: somebody meant it.
 *
 * @throws ValidationError naming the field, and nothing else, on any JSON value
 */
export function validateOutcome(raw: unknown, rows: readonly BundleRow[]): Outcome {
  if (rows.some((row) => row.questionId === '')) {
    throw new ValidationError(
      'question_id',
      'is missing on a question of this request, so it can be neither answered nor rejected, only cancelled',
    );
  }
  const input = readOutcomeInput(raw);
  return input.rejected === true ? rejection(input) : answer(input, rows);
}

function rejection(input: OutcomeInput): Outcome {
  if (input.answers !== undefined && input.answers.length > 0) {
    throw new ValidationError('answers', 'must be empty or absent when rejected is true');
  }
  return { kind: 'rejected', reason: input.reject_reason ?? '' };
}

function answer(input: OutcomeInput, rows: readonly BundleRow[]): Outcome {
  if ((input.reject_reason ?? '').trim() !== '') {
    throw new ValidationError('reject_reason', 'can only be given together with rejected: true');
  }
  const answers = input.answers ?? [];
  const questions = new Map(rows.map((row) => [row.questionId, row.question]));
  const seen = new Set<string>();
  const entries = answers.map((entry, index) => {
    const path = `answers[${index}]`;
    const question = questions.get(entry.question_id);
    if (question === undefined) {
      throw new ValidationError(`${path}.question_id`, 'is not the id of a question of this request');
    }
    if (seen.has(entry.question_id)) {
      throw new ValidationError(`${path}.question_id`, 'repeats a question that another entry answers');
    }
    seen.add(entry.question_id);
    const options = new Set(question.options.map((option) => option.option_id));
    const unknown = (entry.selected_options ?? []).findIndex((optionId) => !options.has(optionId));
    if (unknown !== -1) {
      throw new ValidationError(`${path}.selected_options[${unknown}]`, 'is not the id of an option of this question');
    }
    return completed(entry);
  });
  if (answers.length !== rows.length) {
    throw new ValidationError(
      'answers',
      `must have exactly one entry per question: expected ${rows.length}, got ${answers.length}`,
    );
  }
  return { kind: 'answered', answers: entries };
}

function completed(entry: AnswerInput): AnswerEntry {
  return {
    question_id: entry.question_id,
    selected_options: entry.selected_options ?? [],
    custom_text: entry.custom_text ?? '',
  };
}
