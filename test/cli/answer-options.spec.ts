import { describe, expect, it } from '@jest/globals';
import { toRespondBody } from '../../src/cli/commands/answer-options.js';

describe('the options of question answer', () => {
  it('makes one entry for each question named', () => {
    expect(toRespondBody({ select: ['q1=a,b', 'q2=c'], text: ['q2=as = said', 'q3='] })).toEqual({
      answers: [
        { question_id: 'q1', selected_options: ['a', 'b'], custom_text: '' },
        { question_id: 'q2', selected_options: ['c'], custom_text: 'as = said' },
        { question_id: 'q3', selected_options: [], custom_text: '' },
      ],
    });
  });

  it('adds up what is selected for one question', () => {
    expect(toRespondBody({ select: ['q1=a', 'q1= b '], text: [] })).toEqual({
      answers: [{ question_id: 'q1', selected_options: ['a', 'b'], custom_text: '' }],
    });
  });

  it('leaves text as it was typed', () => {
    expect(toRespondBody({ select: [], text: ['q1= two  spaces '] })).toEqual({
      answers: [{ question_id: 'q1', selected_options: [], custom_text: ' two  spaces ' }],
    });
  });

  it.each([
    [true as const, ''],
    ['not now', 'not now'],
  ])('declines with --reject %s', (reject, reason) => {
    expect(toRespondBody({ select: [], text: [], reject })).toEqual({ rejected: true, reject_reason: reason });
  });

  it('takes any name for a question, also one that objects have', () => {
    expect(toRespondBody({ select: ['__proto__=a'], text: [] })).toEqual({
      answers: [{ question_id: '__proto__', selected_options: ['a'], custom_text: '' }],
    });
  });

  it.each([
    [{ select: [], text: [] }, '--select, --text or --reject'],
    [{ select: ['q1'], text: [] }, '--select must be'],
    [{ select: ['=a'], text: [] }, '--select must be'],
    [{ select: ['q1='], text: [] }, '--select must be'],
    [{ select: ['q1=a,,b'], text: [] }, '--select must be'],
    [{ select: [], text: ['words'] }, '--text must be'],
    [{ select: [], text: ['q1=a', 'q1=b'] }, '--text is given twice for "q1"'],
    [{ select: ['q1=a'], text: [], reject: true as const }, '--reject cannot be combined'],
  ])('refuses %j', (options, sentence) => {
    expect(() => toRespondBody(options)).toThrow(sentence);
  });
});
