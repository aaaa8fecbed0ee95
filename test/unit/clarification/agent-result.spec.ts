import { describe, expect, it } from '@jest/globals';
import { agentResult } from '../../../src/clarification/domain/agent-result.js';
import type { AnswerEntry, Response } from '../../../src/clarification/domain/bundle.js';
import { answer, bundle, NOON, PENDING_ID, row } from './rows.js';

const response = (answers: AnswerEntry[], changes: Partial<Response> = {}): Response => ({
  pending_id: PENDING_ID,
  answers,
  rejected: false,
  reject_reason: '',
  responded_at: NOON,
  ...changes,
});

describe('what the asking agent gets', () => {
  it('ASK-RESULT: is keyed by question id, with ids, labels, text and whether anything was said', () => {
    const result = agentResult(
      bundle(4),
      response([answer(0, [1, 3], 'x'), answer(1, [2]), answer(2, [], 'y'), answer(3)]),
    );
    expect(result).toEqual({
      q1: {
        selected_options: ['q1_opt1', 'q1_opt3'],
        selected_labels: ['Label q1.1', 'Label q1.3'],
        custom_text: 'x',
        answered: true,
      },
      q2: { selected_options: ['q2_opt2'], selected_labels: ['Label q2.2'], custom_text: '', answered: true },
      q3: { selected_options: [], selected_labels: [], custom_text: 'y', answered: true },
      q4: { selected_options: [], selected_labels: [], custom_text: '', answered: false },
    });
    expect(Object.keys(result)).toEqual(['q1', 'q2', 'q3', 'q4']);
  });

  it('R9 ASK-RESULT: a declined bundle is its rejection and the reason, whoever declined it', () => {
    expect(agentResult(bundle(), response([], { rejected: true, reject_reason: 'later' }))).toEqual({
      rejected: true,
      reject_reason: 'later',
    });
    expect(agentResult(bundle(), response([answer(1, [1])], { rejected: true }))).toEqual({
      rejected: true,
      reject_reason: '',
    });
  });

  it('N7: a question without an entry is not answered', () => {
    expect(agentResult(bundle(2), response([answer(1, [], 'x')]))).toMatchObject({
      q1: { selected_options: [], selected_labels: [], custom_text: '', answered: false },
      q2: { answered: true },
    });
  });

  it('L15: an option that cannot be read any more, or has no label, goes by its id', () => {
    const question = { options: [{ option_id: 'q1_opt1', label: '' }] };
    expect(agentResult([row(0, { metadata: { question } })], response([answer(0, [1, 2])]))).toMatchObject({
      q1: { selected_labels: ['q1_opt1', 'q1_opt2'] },
    });
  });

  it('ODD-ROWS: a question id that objects already know is a key like any other', () => {
    const rows = [row(0, { metadata: { question_id: '__proto__' } })];
    const entry = { question_id: '__proto__', selected_options: [], custom_text: 'x' };
    expect(JSON.stringify(agentResult(rows, response([entry])))).toBe(
      '{"__proto__":{"selected_options":[],"selected_labels":[],"custom_text":"x","answered":true}}',
    );
  });
});
