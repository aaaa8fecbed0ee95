import { inD2Order, type BundleRow, type Response } from './bundle.js';

/** What the asking agent reads of one question. `answered` is false when nothing was said to it (N7). */
export interface AgentAnswer {
  readonly selected_options: readonly string[];
  readonly selected_labels: readonly string[];
  readonly custom_text: string;
  readonly answered: boolean;
}

/** Keyed by question id; question ids cannot be `rejected` or `reject_reason`. */
export type AgentResult =
  { readonly [questionId: string]: AgentAnswer } | { readonly rejected: true; readonly reject_reason: string };

/**
 * The result of both in-session tools. The rows may have been read before the claim: only their questions count.
 * A label that is empty or no longer readable is the option's id.
 */
export function agentResult(rows: readonly BundleRow[], response: Response): AgentResult {
  if (response.rejected) return { rejected: true, reject_reason: response.reject_reason };
  const entries = new Map(response.answers.map((entry) => [entry.question_id, entry]));
  return Object.fromEntries(
    inD2Order(rows).map(({ questionId, question }): [string, AgentAnswer] => {
      const { selected_options = [], custom_text = '' } = entries.get(questionId) ?? {};
      const labels = new Map(question.options.map((option) => [option.option_id, option.label]));
      return [
        questionId,
        {
          selected_options,
          selected_labels: selected_options.map((id) => labels.get(id) || id),
          custom_text,
          answered: selected_options.length > 0 || custom_text !== '',
        },
      ];
    }),
  );
}
