import type { QuestionInput } from '../../src/clarification/domain/new-bundle.js';

/** A question with two options, `left` and `right`. */
export function questionOf(id: string): QuestionInput {
  return {
    id,
    title: `Title of ${id}`,
    prompt: `Which of ${id}?`,
    options: [
      { option_id: 'left', label: `Left of ${id}` },
      { option_id: 'right', label: `Right of ${id}`, description: 'The other one' },
    ],
  };
}
