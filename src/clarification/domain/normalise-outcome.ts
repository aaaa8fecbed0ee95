import { assertNever } from '../../common/assert-never.js';
import { inD2Order, type BundleRow } from './bundle.js';
import type { Outcome } from './validate-outcome.js';

/**
 * The one form of a validated outcome (N3a): equal decisions become equal bytes, and doing it twice changes nothing.
 * Entries in D2 order, options in the question's order and once each, texts without white space at either end, which
 * is what `String.prototype.trim` removes: Unicode spaces, line ends and the byte order mark. Done before the claim,
 * because what is claimed is what every loser is told (P1b).
 */
export function normaliseOutcome(outcome: Outcome, rows: readonly BundleRow[]): Outcome {
  switch (outcome.kind) {
    case 'rejected':
      return { kind: 'rejected', reason: outcome.reason.trim() };
    case 'answered': {
      const entries = new Map(outcome.answers.map((entry) => [entry.question_id, entry]));
      return {
        kind: 'answered',
        answers: inD2Order(rows).map(({ questionId, question }) => {
          const entry = entries.get(questionId);
          const selected = new Set(entry?.selected_options);
          return {
            question_id: questionId,
            selected_options: question.options.map((option) => option.option_id).filter((id) => selected.has(id)),
            custom_text: (entry?.custom_text ?? '').trim(),
          };
        }),
      };
    }
    default:
      return assertNever(outcome);
  }
}
