import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { normaliseOutcome } from '../../../src/clarification/domain/normalise-outcome.js';
import { validateOutcome } from '../../../src/clarification/domain/validate-outcome.js';
import { answer, bundle, row } from './rows.js';

const normalised = (raw: unknown, rows = bundle()) => normaliseOutcome(validateOutcome(raw, rows), rows);

describe('the one form of an outcome', () => {
  it('N3a: entries in D2 order, options in the question’s order and once, texts trimmed', () => {
    const answers = [answer(1, [], '\t b \n'), answer(0, [3, 1, 3], ' a  a ')];
    expect(normalised({ answers })).toEqual({
      kind: 'answered',
      answers: [
        { question_id: 'q1', selected_options: ['q1_opt1', 'q1_opt3'], custom_text: 'a  a' },
        { question_id: 'q2', selected_options: [], custom_text: 'b' },
      ],
    });
  });

  it('N3a: the order is that of the rows’ index, not of their ids or their reading', () => {
    const rows = [row(0, { metadata: { question_index: 1 } }), row(1, { metadata: { question_index: 0 } })];
    const answers = [answer(0), answer(1)];
    expect(normalised({ answers }, rows)).toMatchObject({ answers: [{ question_id: 'q2' }, { question_id: 'q1' }] });
  });

  it('N3a: of text only what Unicode calls white space, at its ends, goes', () => {
    const around = '\u0009\u000a\u000b\u000c\u000d \u00a0\u1680\u2003\u2028\u2029\u202f\u3000\ufeff';
    expect(
      normalised({ answers: [answer(0, [], `${around}é\u00a0e\u0301 \u200b${around}`)] }, bundle(1)),
    ).toMatchObject({
      answers: [{ custom_text: 'é\u00a0e\u0301 \u200b' }],
    });
  });

  it.each([
    [undefined, ''],
    ['', ''],
    ['  ', ''],
    [' a b\n', 'a b'],
  ])('N3a: the reason %j becomes %j', (reject_reason, reason) => {
    expect(normalised({ rejected: true, ...(reject_reason === undefined ? {} : { reject_reason }) })).toEqual({
      kind: 'rejected',
      reason,
    });
  });

  const rows = bundle(3);
  const padding = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\u00a0', '\ufeff'), maxLength: 3 });
  const core = fc.constantFrom('', 'x', 'a b', 'é', '😀 ok', '\u200b');
  const decision = fc.tuple(
    ...rows.map((_, n) => fc.record({ n: fc.constant(n), selected: fc.subarray([1, 2, 3]), text: core })),
  );

  it('N3a P1b: equal decisions become equal bytes, however they were submitted', () => {
    const resubmission = decision.chain((entries) =>
      fc.tuple(
        fc.constant(entries),
        fc.shuffledSubarray(entries, { minLength: entries.length }).chain((shuffled) =>
          fc.tuple(
            ...shuffled.map(({ n, selected, text }) =>
              fc
                .tuple(
                  fc.shuffledSubarray([...selected, ...selected], { minLength: selected.length * 2 }),
                  padding,
                  padding,
                  fc.boolean(),
                )
                .map(([options, before, after, leaveOut]) => {
                  const custom_text = before + text + after;
                  return {
                    ...(custom_text.trim() === '' && leaveOut ? {} : { custom_text }),
                    ...(options.length === 0 && leaveOut
                      ? {}
                      : { selected_options: options.map((m) => `q${n + 1}_opt${m}`) }),
                    question_id: `q${n + 1}`,
                  };
                }),
            ),
          ),
        ),
      ),
    );
    fc.assert(
      fc.property(resubmission, fc.shuffledSubarray(rows, { minLength: 3 }), ([entries, answers], rowsAsRead) => {
        const plain = { answers: entries.map(({ n, selected, text }) => answer(n, selected, text)) };
        expect(JSON.stringify(normalised({ answers }, rowsAsRead))).toBe(JSON.stringify(normalised(plain, rows)));
      }),
    );
  });

  it('N3a: different decisions stay different', () => {
    fc.assert(
      fc.property(decision, decision, (one, other) => {
        const bytes = (entries: typeof one) =>
          JSON.stringify(
            normalised({ answers: entries.map(({ n, selected, text }) => answer(n, selected, text)) }, rows),
          );
        expect(bytes(one) === bytes(other)).toBe(JSON.stringify(one) === JSON.stringify(other));
      }),
    );
  });

  it('N3a: normalising twice changes nothing', () => {
    fc.assert(
      fc.property(decision, padding, fc.boolean(), (entries, space, reject) => {
        const answers = entries.map(({ n, selected, text }) => answer(n, [...selected, ...selected], space + text));
        const once = normalised(reject ? { rejected: true, reject_reason: `${space}why${space}` } : { answers }, rows);
        expect(JSON.stringify(normaliseOutcome(once, rows))).toBe(JSON.stringify(once));
      }),
    );
  });
});
