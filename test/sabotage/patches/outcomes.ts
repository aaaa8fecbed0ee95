import type { Patch } from '../patch.js';

const normalise = {
  file: 'src/clarification/domain/normalise-outcome.ts',
  spec: 'test/unit/clarification/normalise-outcome.spec.ts',
};
const validate = {
  file: 'src/clarification/domain/validate-outcome.ts',
  spec: 'test/unit/clarification/validate-outcome.spec.ts',
};

/** What is a valid outcome, and its one form. */
export const OUTCOMES: readonly Patch[] = [
  {
    rule: 'N3a',
    says: 'Chosen options keep the order and the repetitions in which they were sent.',
    ...normalise,
    find: 'question.options.map((option) => option.option_id).filter((id) => selected.has(id)),',
    replace: 'entry?.selected_options ?? [],',
  },
  {
    rule: 'N6',
    says: 'Several entries for one question make up the count.',
    ...validate,
    find: 'if (seen.has(entry.question_id)) {',
    replace: 'if (answers.length < rows.length && seen.has(entry.question_id)) {',
  },
  {
    rule: 'N6a',
    says: 'Rows of one question id want one answer together.',
    ...validate,
    find: 'if (answers.length !== rows.length) {',
    replace: 'if (answers.length !== questions.size) {',
  },
  {
    rule: 'N7',
    says: 'An entry without text is stored without it.',
    ...validate,
    find: "custom_text: entry.custom_text ?? '',",
    replace: '...(entry.custom_text !== undefined && { custom_text: entry.custom_text }),',
  },
  {
    rule: 'N7',
    says: 'A resumed agent reads nothing where nothing was said.',
    file: 'src/clarification/domain/answer-prompt.ts',
    find: "if (selected.length === 0 && text === '') return 'Answer: (no answer)';",
    replace: "if (selected.length === 0 && text === '') return '';",
    spec: 'test/unit/clarification/answer-prompt.spec.ts',
  },
  {
    rule: 'N8',
    says: 'One option that exists is enough.',
    ...validate,
    find: 'if (unknown !== -1) {',
    replace: 'if (unknown === 0) {',
  },
  {
    rule: 'N8a',
    says: 'rejected: false without answers is taken for a rejection of a bundle of one question.',
    ...validate,
    find: 'return input.rejected === true ? rejection(input) : answer(input, rows);',
    replace:
      'return input.rejected === true || (input.rejected === false && rows.length === 1 && !input.answers?.length) ? rejection(input) : answer(input, rows);',
  },
  {
    rule: 'N8a',
    says: 'The answers that come with a rejection are dropped without a word.',
    ...validate,
    find: 'if (input.answers !== undefined && input.answers.length > 0) {',
    replace: 'if (input.answers === null) {',
  },
  {
    rule: 'N8b',
    says: 'Text is measured in UTF-16 units, so that an emoji counts two.',
    file: 'src/common/text.ts',
    find: 'for (const _ of text) length += 1;',
    replace: 'length = text.length;',
    spec: 'test/unit/clarification/validate-outcome.spec.ts',
  },
  {
    rule: 'N8b',
    says: 'The bound is that of the trimmed text.',
    file: 'src/common/text.ts',
    find: 'for (const _ of text) length += 1;',
    replace: 'for (const _ of text.trim()) length += 1;',
    spec: 'test/unit/clarification/outcome-input.spec.ts',
  },
  {
    rule: 'N8d',
    says: 'A refused entry is not told by its place.',
    ...validate,
    find: 'const path = `answers[${index}]`;',
    replace: 'const path = `entry ${index}`;',
  },
  {
    rule: 'L16',
    says: 'A bundle with a row that has no question id can be rejected.',
    ...validate,
    find: "if (rows.some((row) => row.questionId === '')) {",
    replace:
      "if (rows.some((row) => row.questionId === '') && (raw as { rejected?: unknown } | null)?.rejected !== true) {",
  },
  {
    rule: 'R2c',
    says: 'Rows that are resolved already are not validated against.',
    ...validate,
    find: 'const input = readOutcomeInput(raw);',
    replace:
      "const input = readOutcomeInput(raw);\n  if (rows.every((row) => row.status === 'answered')) return { kind: 'answered', answers: (input.answers ?? []).map(completed) };",
  },
];
