import { describe, expect, it } from '@jest/globals';
import { answerPrompt } from '../../../src/clarification/domain/answer-prompt.js';
import { answer, row } from './rows.js';

const answered = (n: number, selected: number[], text: string) =>
  row(n, { metadata: { status: 'answered', response: answer(n, selected, text) } });

describe('what a resumed agent is told', () => {
  it('PROMPT: names every question in D2 order, chosen options by label and id, and the text', () => {
    const rows = [
      answered(3, [], 'only text'),
      answered(2, [], ''),
      answered(1, [2], ''),
      answered(0, [1, 3], 'both\nlines'),
    ];
    expect(answerPrompt(rows)).toBe(
      `The questions you asked have been answered.

Question q1: Title q1
Prompt q1?
Selected options:
- Label q1.1 (q1_opt1)
- Label q1.3 (q1_opt3)
Text: both
lines

Question q2: Title q2
Prompt q2?
Selected options:
- Label q2.2 (q2_opt2)

Question q3: Title q3
Prompt q3?
Answer: (no answer)

Question q4: Title q4
Prompt q4?
Text: only text`,
    );
  });

  it('N7: a question to which nothing was said reads "(no answer)", with or without a stored response', () => {
    for (const response of [answer(0), undefined, null, 'unreadable']) {
      expect(answerPrompt([row(0, { metadata: { status: 'answered', response } })])).toContain('Answer: (no answer)');
    }
  });

  it('L15: an unreadable question is named by its id, an option without a readable label by its own', () => {
    const response = { question_id: 'q1', selected_options: ['q1_opt1'], custom_text: '' };
    expect(answerPrompt([row(0, { metadata: { status: 'answered', question: null, response } })])).toBe(
      'The questions you asked have been answered.\n\nQuestion q1:\nSelected options:\n- q1_opt1',
    );
  });
});
