import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ValidationError } from '../../../src/common/domain-error.js';
import { OUTCOME_SCHEMA } from '../../../src/clarification/domain/outcome-input.js';
import { validateOutcome } from '../../../src/clarification/domain/validate-outcome.js';
import { jsonNear } from '../input/json-near-schema.js';
import { answer, bundle, row } from './rows.js';

function fieldOf(raw: unknown, rows = bundle()): string {
  try {
    validateOutcome(raw, rows);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    expect(error.message.startsWith(`${error.field} `)).toBe(true);
    return error.field;
  }
  return 'accepted';
}

describe('an answer', () => {
  it('N7: may have options, text, both or neither', () => {
    const answers = [answer(0, [1, 3]), answer(1, [], 'text'), answer(2, [2], 'both'), answer(3)];
    expect(validateOutcome({ answers }, bundle(4))).toEqual({ kind: 'answered', answers });
  });

  it('N7: what an entry leaves out is empty', () => {
    expect(validateOutcome({ answers: [{ question_id: 'q1' }] }, bundle(1))).toEqual({
      kind: 'answered',
      answers: [{ question_id: 'q1', selected_options: [], custom_text: '' }],
    });
  });

  it.each<[string, unknown, string]>([
    ['too few', { answers: [answer(0)] }, 'answers'],
    ['none', { answers: [] }, 'answers'],
    ['nothing at all', {}, 'answers'],
    ['too many', { answers: [answer(0), answer(1), answer(2)] }, 'answers[2].question_id'],
    ['an unknown id', { answers: [answer(0), answer(2)] }, 'answers[1].question_id'],
    ['an inherited name as id', { answers: [answer(0), { question_id: 'constructor' }] }, 'answers[1].question_id'],
    ['an id in other letters', { answers: [answer(0), { question_id: 'Q2' }] }, 'answers[1].question_id'],
    ['an empty id', { answers: [answer(0), { question_id: '' }] }, 'answers[1].question_id'],
    ['a repeated id', { answers: [answer(0), answer(0)] }, 'answers[1].question_id'],
    ['a repeated id beside all', { answers: [answer(0), answer(1), answer(1)] }, 'answers[2].question_id'],
  ])('N6: %s is an error', (_what, raw, field) => {
    expect(fieldOf(raw)).toBe(field);
  });

  it('N6: a wrong count says how many there must be', () => {
    expect(() => validateOutcome({ answers: [answer(0)] }, bundle(3))).toThrow(
      'answers must have exactly one entry per question: expected 3, got 1',
    );
  });

  it('N6: entries may come in any order', () => {
    expect(fieldOf({ answers: [answer(1), answer(0)] })).toBe('accepted');
  });

  it('N6a: one answer is expected per row, so two rows of one id cannot be answered, only rejected', () => {
    const twice = [row(0), row(0, { id: 'm2' })];
    expect(fieldOf({ answers: [answer(0)] }, twice)).toBe('answers');
    expect(fieldOf({ answers: [answer(0), answer(0)] }, twice)).toBe('answers[1].question_id');
    expect(fieldOf({ rejected: true }, twice)).toBe('accepted');
  });

  it('L12: rows that are already terminal want their entry too', () => {
    const rows = [row(0, { metadata: { status: 'answered' } }), row(1)];
    expect(fieldOf({ answers: [answer(1)] }, rows)).toBe('answers');
    expect(fieldOf({ answers: [answer(0), answer(1)] }, rows)).toBe('accepted');
  });

  it.each(['answered', 'rejected', 'cancelled', 'expired', 'responding'])(
    'R2c: a bundle that is %s is validated like any other',
    (status) => {
      const rows = [0, 1].map((n) => row(n, { metadata: { status } }));
      expect(fieldOf({ answers: [answer(0), answer(1)] }, rows)).toBe('accepted');
      expect(fieldOf({ rejected: true }, rows)).toBe('accepted');
      expect(fieldOf({ answers: [answer(0)] }, rows)).toBe('answers');
    },
  );

  it.each<[string[], string]>([
    [['q1_opt1', 'q1_opt4'], 'answers[0].selected_options[1]'],
    [['q2_opt1'], 'answers[0].selected_options[0]'],
    [['Label q1.1'], 'answers[0].selected_options[0]'],
    [[''], 'answers[0].selected_options[0]'],
    [['__proto__'], 'answers[0].selected_options[0]'],
    [['q1_opt1 '], 'answers[0].selected_options[0]'],
  ])('N8: %j is not all options of the question', (selected_options, field) => {
    expect(fieldOf({ answers: [{ question_id: 'q1', selected_options }] }, bundle(1))).toBe(field);
  });

  it('N8: how many options is not constrained, and one may be said twice', () => {
    expect(fieldOf({ answers: [answer(0, [1, 2, 3, 1])] }, bundle(1))).toBe('accepted');
  });

  it('L15: a question without readable options takes text or a rejection, no option', () => {
    const rows = [row(0, { metadata: { question: 'unreadable' } })];
    expect(fieldOf({ answers: [answer(0, [], 'text')] }, rows)).toBe('accepted');
    expect(fieldOf({ rejected: true }, rows)).toBe('accepted');
    expect(fieldOf({ answers: [answer(0, [1])] }, rows)).toBe('answers[0].selected_options[0]');
  });

  it('N8b: 2000 code points pass untrimmed and uncounted in UTF-16', () => {
    const text = ` ${'😀'.repeat(1998)} `;
    expect(fieldOf({ answers: [answer(0, [], text)] }, bundle(1))).toBe('accepted');
    expect(fieldOf({ rejected: true, reject_reason: text })).toBe('accepted');
    expect(validateOutcome({ answers: [answer(0, [], text)] }, bundle(1))).toMatchObject({
      answers: [{ custom_text: text }],
    });
  });

  it('N8: a reason without a rejection is an error, because its words would be lost', () => {
    expect(fieldOf({ answers: [answer(0), answer(1)], reject_reason: 'why' })).toBe('reject_reason');
    expect(fieldOf({ answers: [answer(0), answer(1)], rejected: false, reject_reason: 'why' })).toBe('reject_reason');
    expect(fieldOf({ reject_reason: 'why' })).toBe('reject_reason');
    expect(fieldOf({ answers: [answer(0), answer(1)], rejected: false, reject_reason: ' ' })).toBe('accepted');
  });
});

describe('a rejection', () => {
  it.each<[unknown, string]>([
    [{ rejected: true }, ''],
    [{ rejected: true, answers: [] }, ''],
    [{ rejected: true, reject_reason: '' }, ''],
    [{ rejected: true, reject_reason: ' not now ' }, ' not now '],
    [{ rejected: true, task_id: 'elsewhere' }, ''],
  ])('N8a: %j rejects', (raw, reason) => {
    expect(validateOutcome(raw, bundle())).toEqual({ kind: 'rejected', reason });
  });

  it('N8a: with answers it is an error', () => {
    expect(fieldOf({ rejected: true, answers: [answer(0), answer(1)] })).toBe('answers');
    expect(fieldOf({ rejected: true, answers: [{ question_id: 'nonsense' }] })).toBe('answers');
  });

  it.each([1, 2])('N8a: rejected false without answers is the wrong count, also for %d question(s)', (questions) => {
    for (const raw of [{ rejected: false }, { rejected: false, answers: [] }]) {
      expect(() => validateOutcome(raw, bundle(questions))).toThrow(`expected ${questions}, got 0`);
    }
  });
});

describe('a bundle that cannot be answered', () => {
  it('L16: a row without a question id makes every outcome an error that says so', () => {
    for (const question_id of [undefined, '', null, 5]) {
      const rows = [row(0), row(1, { metadata: { question_id } })];
      for (const raw of [{ answers: [answer(0), answer(1)] }, { rejected: true }, {}, null]) {
        expect(() => validateOutcome(raw, rows)).toThrow(
          'question_id is missing on a question of this request, so it can be neither answered nor rejected, only cancelled',
        );
      }
    }
  });
});

describe('any input', () => {
  const rows = bundle(3);
  const ids = fc.constantFrom('q1', 'q2', 'q3', 'q4', '', '__proto__');
  const options = fc.constantFrom('q1_opt1', 'q2_opt2', 'q3_opt3', 'x');
  /** Known fields only, with the right types. */
  const near = fc.record(
    {
      answers: fc.array(
        fc.record(
          { question_id: ids, selected_options: fc.array(options), custom_text: fc.string({ unit: 'binary' }) },
          { requiredKeys: ['question_id'] },
        ),
        { maxLength: 4 },
      ),
      rejected: fc.boolean(),
      reject_reason: fc.constantFrom('', ' ', 'why'),
    },
    { requiredKeys: [] },
  );

  it('N8d: what is refused in an entry is named by its place', () => {
    const place = /^(accepted|answers|reject_reason|answers\[\d\]\.(question_id|custom_text|selected_options\[\d+\]))$/;
    fc.assert(
      fc.property(near, (raw) => {
        expect(fieldOf(raw, rows)).toMatch(place);
      }),
    );
  });

  it('N8d: is an outcome or one ValidationError that names its field, never anything else', () => {
    fc.assert(
      fc.property(fc.oneof(near, jsonNear(OUTCOME_SCHEMA), fc.jsonValue()), (raw) => {
        expect(fieldOf(raw, rows)).not.toBe('');
      }),
      { numRuns: 2000 },
    );
  });
});
