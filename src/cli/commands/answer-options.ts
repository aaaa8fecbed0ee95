import { UsageError } from '../cli-error.js';

/** The body of `POST /clarification/:id/respond`. */
export type RespondBody =
  | { answers: { question_id: string; selected_options: string[]; custom_text: string }[] }
  | { rejected: true; reject_reason: string };

export interface AnswerOptions {
  /** `QUESTION=OPTION[,OPTION]`, any number of them. */
  readonly select: readonly string[];
  /** `QUESTION=TEXT`, one a question. */
  readonly text: readonly string[];
  /** The reason, or `true` for a rejection without one. */
  readonly reject?: string | true;
}

/** One entry for each question that an option names. What the bundle makes of them is the server's to say. */
export function toRespondBody({ select, text, reject }: AnswerOptions): RespondBody {
  if (reject !== undefined) {
    if (select.length + text.length > 0) throw new UsageError('--reject cannot be combined with --select or --text');
    return { rejected: true, reject_reason: reject === true ? '' : reject };
  }
  const answers = new Map<string, { question_id: string; selected_options: string[]; custom_text: string }>();
  const entryOf = (question: string) => {
    const entry = answers.get(question) ?? { question_id: question, selected_options: [], custom_text: '' };
    answers.set(question, entry);
    return entry;
  };
  for (const option of select) {
    const [question, ids] = assignment('--select', 'QUESTION=OPTION[,OPTION]', option);
    const selected = ids.split(',').map((id) => id.trim());
    if (selected.includes('')) throw new UsageError(`--select must be QUESTION=OPTION[,OPTION], not "${option}"`);
    entryOf(question).selected_options.push(...selected);
  }
  const withText = new Set<string>();
  for (const option of text) {
    const [question, words] = assignment('--text', 'QUESTION=TEXT', option);
    if (withText.has(question)) throw new UsageError(`--text is given twice for "${question}"`);
    withText.add(question);
    entryOf(question).custom_text = words;
  }
  if (answers.size === 0) throw new UsageError('say what to answer: --select, --text or --reject');
  return { answers: [...answers.values()] };
}

function assignment(flag: string, form: string, option: string): [string, string] {
  const at = option.indexOf('=');
  if (at < 1) throw new UsageError(`${flag} must be ${form}, not "${option}"`);
  return [option.slice(0, at), option.slice(at + 1)];
}
