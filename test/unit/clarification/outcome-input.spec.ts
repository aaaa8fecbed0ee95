import { describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { ValidationError } from '../../../src/common/domain-error.js';
import { OUTCOME_SCHEMA, readOutcomeInput } from '../../../src/clarification/domain/outcome-input.js';
import { jsonNear } from '../input/json-near-schema.js';

const accepts = new Ajv2020({ strict: true }).compile(OUTCOME_SCHEMA);

/** The error of reading, undefined when it was read; anything but a ValidationError fails the test. */
function refusal(raw: unknown): ValidationError | undefined {
  try {
    readOutcomeInput(raw);
    return undefined;
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    return error;
  }
}

/** As a body arrives: `__proto__` is a key of its own there. */
const json = (text: string): unknown => JSON.parse(text);
const entry = (changes: Record<string, unknown> = {}) => ({ answers: [{ question_id: 'q1', ...changes }] });

describe('the shape of an outcome', () => {
  it.each<[unknown]>([
    [{}],
    [{ answers: [] }],
    [entry()],
    [entry({ selected_options: [], custom_text: '' })],
    [entry({ selected_options: ['a', 'a', ''], custom_text: 'text' })],
    [{ rejected: true, reject_reason: 'no' }],
    [{ rejected: false, reject_reason: '' }],
    [{ answers: [], task_id: 't1' }],
    [{ task_id: null }],
    [{ task_id: { nested: ['\u0000'] } }],
    [entry({ custom_text: '😀'.repeat(2000) })],
    [{ reject_reason: 'é'.repeat(2000) }],
    [{ answers: Array.from({ length: 100 }, (_, n) => ({ question_id: `q${n}` })) }],
    [entry({ selected_options: Array(100).fill('a') })],
  ])('N7: is accepted by the schema and the reader alike (%#)', (raw) => {
    expect(accepts(raw)).toBe(true);
    expect(refusal(raw)).toBeUndefined();
  });

  const refusedByBoth = (raw: unknown, field: string): void => {
    expect(accepts(raw)).toBe(false);
    const error = refusal(raw);
    expect(error?.field).toBe(field);
    expect(error?.message.startsWith(`${field} `)).toBe(true);
  };

  it.each<[unknown, string]>([
    [null, 'outcome'],
    ['x', 'outcome'],
    [5, 'outcome'],
    [[], 'outcome'],
    [{ answers: 'q1' }, 'answers'],
    [{ answers: {} }, 'answers'],
    [{ answers: null }, 'answers'],
    [{ answers: [null] }, 'answers[0]'],
    [{ answers: [{ question_id: 'q1' }, 'q2'] }, 'answers[1]'],
    [{ answers: [[]] }, 'answers[0]'],
    [{ answers: [{ question_id: 1 }] }, 'answers[0].question_id'],
    [entry({ selected_options: 'a' }), 'answers[0].selected_options'],
    [entry({ selected_options: null }), 'answers[0].selected_options'],
    [entry({ selected_options: ['a', 5] }), 'answers[0].selected_options[1]'],
    [entry({ selected_options: [['a']] }), 'answers[0].selected_options[0]'],
    [entry({ custom_text: 5 }), 'answers[0].custom_text'],
    [entry({ custom_text: null }), 'answers[0].custom_text'],
    [{ rejected: 'true' }, 'rejected'],
    [{ rejected: 1 }, 'rejected'],
    [{ rejected: null }, 'rejected'],
    [{ reject_reason: ['no'] }, 'reject_reason'],
    [{ answers: Array(101).fill({ question_id: 'q1' }) }, 'answers'],
    [entry({ selected_options: Array(101).fill('a') }), 'answers[0].selected_options'],
  ])('BAD-TYPES: a wrong type or length is refused by both, the error naming its field (%#)', refusedByBoth);

  it.each<[unknown, string]>([
    [{ answers: [{}] }, 'answers[0].question_id'],
    [{ answers: [{ question_id: '' }] }, 'answers[0].question_id'],
  ])('N6: an entry without a question id is refused by both, the error naming its field (%#)', refusedByBoth);

  it.each<[unknown, string]>([
    [{ answer: [] }, 'answer'],
    [{ rejected: true, reason: 'no' }, 'reason'],
    [{ pending_id: 'p' }, 'pending_id'],
    [entry({ text: 'x' }), 'answers[0].text'],
    [json('{"__proto__":{"answers":[]}}'), '__proto__'],
    [json('{"answers":[{"question_id":"q1","constructor":1}]}'), 'answers[0].constructor'],
  ])('UNKNOWN-FIELDS: a field we do not know is refused by both, the error naming its field (%#)', refusedByBoth);

  it.each<[unknown, string]>([
    [entry({ custom_text: 'x'.repeat(2001) }), 'answers[0].custom_text'],
    [entry({ custom_text: '😀'.repeat(2001) }), 'answers[0].custom_text'],
    [entry({ custom_text: `${'x'.repeat(2000)} ` }), 'answers[0].custom_text'],
    [{ rejected: true, reject_reason: 'x'.repeat(2001) }, 'reject_reason'],
    [{ rejected: true, reject_reason: ' '.repeat(2001) }, 'reject_reason'],
  ])(
    'N8b: 2001 code points are refused by both, even if trimming would save them, the error naming its field (%#)',
    refusedByBoth,
  );

  it.each<[unknown, string]>([
    [entry({ custom_text: 'a\u0000' }), 'answers[0].custom_text'],
    [entry({ custom_text: '\ud800' }), 'answers[0].custom_text'],
    [{ answers: [{ question_id: 'q\u0000' }] }, 'answers[0].question_id'],
    [entry({ selected_options: ['a', '\udc00'] }), 'answers[0].selected_options[1]'],
    [{ rejected: true, reject_reason: '\u0000' }, 'reject_reason'],
  ])('BAD-TEXT: U+0000 and lone surrogates are refused by both, the error naming its field (%#)', refusedByBoth);

  it('BAD-TYPES BAD-TEXT UNKNOWN-FIELDS: the schema accepts exactly what the reader accepts', () => {
    const counts = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: jsonNear(OUTCOME_SCHEMA) }, fc.jsonValue()), (raw) => {
        const accepted = accepts(raw);
        expect(refusal(raw) === undefined).toBe(accepted);
        counts[accepted ? 'accepted' : 'refused'] += 1;
      }),
      { numRuns: 3000 },
    );
    // Neither side may be a formality.
    expect(Math.min(counts.accepted, counts.refused)).toBeGreaterThan(300);
  });

  it('BAD-TYPES: huge and deep junk is refused at its outside, without walking it', () => {
    const deep: unknown = json('['.repeat(100_000) + ']'.repeat(100_000));
    const wide = Array.from({ length: 1_000_000 }, () => deep);
    for (const raw of [
      { answers: wide },
      { answers: [deep] },
      { answers: deep },
      { rejected: deep },
      { x: deep },
      deep,
    ]) {
      expect(refusal(raw)).toBeInstanceOf(ValidationError);
    }
  });

  it('BAD-TYPES: of a list that is too long no entry is looked at', () => {
    const untouched = new Proxy(Array(101).fill('a'), {
      get: (list, key) => {
        if (key !== 'length') throw new Error(`${String(key)} was read`);
        return list.length;
      },
    });
    expect(refusal({ answers: untouched })?.field).toBe('answers');
    expect(refusal(entry({ selected_options: untouched }))?.field).toBe('answers[0].selected_options');
  });

  it('UNKNOWN-FIELDS: a stranger’s key is cut before it goes into the sentence', () => {
    expect(refusal({ ['k'.repeat(5_000)]: 1 })?.message.length).toBeLessThan(200);
  });
});
