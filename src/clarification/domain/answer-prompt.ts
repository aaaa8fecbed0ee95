import { inD2Order, type BundleRow } from './bundle.js';

/**
 * What an agent that did not wait is given as its next input. Every question with what was said to it: the chosen
 * options by label and id, and the text as it was written. Rows without a response read "(no answer)" (N7).
 */
export function answerPrompt(rows: readonly BundleRow[]): string {
  const questions = inD2Order(rows).map((row) => [heading(row), said(row)].join('\n'));
  return ['The questions you asked have been answered.', ...questions].join('\n\n');
}

function heading({ questionId, question }: BundleRow): string {
  const name = question.title === '' ? '' : ` ${question.title}`;
  return [`Question ${questionId}:${name}`, question.prompt].filter((line) => line !== '').join('\n');
}

function said({ question, response }: BundleRow): string {
  const selected = response?.selected_options ?? [];
  const text = response?.custom_text ?? '';
  if (selected.length === 0 && text === '') return 'Answer: (no answer)';
  const labels = new Map(question.options.map((option) => [option.option_id, option.label]));
  const chosen = selected.map((id) => {
    const label = labels.get(id) ?? '';
    return label === '' ? `- ${id}` : `- ${label} (${id})`;
  });
  return [
    ...(chosen.length === 0 ? [] : ['Selected options:', ...chosen]),
    ...(text === '' ? [] : [`Text: ${text}`]),
  ].join('\n');
}
