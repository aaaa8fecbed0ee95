import { describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { ValidationError } from '../../../src/common/domain-error.js';
import { schemaOf } from '../../../src/common/input/schema-of.js';
import { validateInput } from '../../../src/common/input/validate-input.js';
import { newMetadata } from '../../../src/clarification/domain/bundle-metadata.js';
import { readBundleRow, type BundleRow, type Question } from '../../../src/clarification/domain/bundle.js';
import {
  BundleInput,
  completeQuestions,
  contextFrom,
  RESERVED_QUESTION_IDS,
  sameRequest,
} from '../../../src/clarification/domain/new-bundle.js';
import { jsonNear } from '../input/json-near-schema.js';
import { PENDING_ID, stored } from './rows.js';

const OPTIONS = [{ label: 'Yes' }, { label: 'No' }];
const ask = (...questions: Record<string, unknown>[]) => ({
  questions: questions.map((question) => ({ prompt: 'Well?', options: OPTIONS, ...question })),
});
const read = (raw: unknown): Question[] => completeQuestions(validateInput(BundleInput, raw).questions);

function fieldOf(raw: unknown): string {
  try {
    read(raw);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    expect(error.message.startsWith(`${error.field} `)).toBe(true);
    return error.field;
  }
  return 'accepted';
}

describe('the questions of a request', () => {
  it('CREATE-IDS: what is left out is filled in by position', () => {
    const named = { id: 'db', title: 'T', options: [{ option_id: 'a', label: 'A', description: 'D' }, { label: 'B' }] };
    expect(read(ask({}, named))).toEqual([
      {
        id: 'q1',
        title: '',
        prompt: 'Well?',
        options: [
          { option_id: 'q1_opt1', label: 'Yes', description: '' },
          { option_id: 'q1_opt2', label: 'No', description: '' },
        ],
      },
      {
        id: 'db',
        title: 'T',
        prompt: 'Well?',
        options: [
          { option_id: 'a', label: 'A', description: 'D' },
          { option_id: 'q2_opt2', label: 'B', description: '' },
        ],
      },
    ]);
  });

  it.each<[string, unknown, string]>([
    ['repeated', ask({ id: 'a' }, { id: 'a' }), 'questions[1].id'],
    ['one that a later question would get', ask({ id: 'q2' }, {}), 'questions[1].id'],
    ['one that an earlier question got', ask({}, { id: 'q1' }), 'questions[1].id'],
    ['empty', ask({ id: '' }), 'questions[0].id'],
    ['too long', ask({ id: 'a'.repeat(65) }), 'questions[0].id'],
    ['of other characters', ask({ id: 'a b' }), 'questions[0].id'],
    ['of other letters', ask({ id: 'é' }), 'questions[0].id'],
    ['ending with a line', ask({ id: 'a\n' }), 'questions[0].id'],
    ['a number', ask({ id: 1 }), 'questions[0].id'],
    ['null', ask({ id: null }), 'questions[0].id'],
  ])('CREATE-IDS: a question id that is %s is an error', (_what, raw, field) => {
    expect(fieldOf(raw)).toBe(field);
  });

  it.each(['rejected', 'reject_reason', 'status', 'pending_id', '__proto__', 'constructor', 'prototype'])(
    'CREATE-IDS: %s is reserved as a question id and nothing else',
    (id) => {
      expect(RESERVED_QUESTION_IDS).toContain(id);
      expect(fieldOf(ask({}, { id }))).toBe('questions[1].id');
      expect(fieldOf(ask({ options: [{ option_id: id, label: 'A' }, { label: 'B' }] }))).toBe('accepted');
    },
  );

  it.each<[string, Record<string, unknown>[], string]>([
    ['repeated', [{ option_id: 'a' }, { option_id: 'a' }], 'questions[0].options[1].option_id'],
    ['one that a later option would get', [{ option_id: 'q1_opt2' }, {}], 'questions[0].options[1].option_id'],
    ['one that an earlier option got', [{}, { option_id: 'q1_opt1' }], 'questions[0].options[1].option_id'],
    ['empty', [{}, { option_id: '' }], 'questions[0].options[1].option_id'],
    ['of other characters', [{ option_id: 'a/b' }, {}], 'questions[0].options[0].option_id'],
  ])('CREATE-IDS: an option id that is %s is an error', (_what, options, field) => {
    expect(fieldOf(ask({ options: options.map((option) => ({ label: 'L', ...option })) }))).toBe(field);
  });

  it('CREATE-IDS: ids of 64 characters of every kind, and the same option ids in two questions, are fine', () => {
    const id = `A-z_0.${'9'.repeat(58)}`;
    const options = [{ option_id: id, label: 'A' }, { label: 'B' }];
    expect(fieldOf(ask({ id, options }, { id: 'a', options }, { id: 'A', options }))).toBe('accepted');
  });

  it.each<[string, unknown, string]>([
    ['no question', ask(), 'questions'],
    ['five questions', ask({}, {}, {}, {}, {}), 'questions'],
    ['questions left out', {}, 'questions'],
    ['no options', ask({ options: [] }), 'questions[0].options'],
    ['options left out', { questions: [{ prompt: 'Well?' }] }, 'questions[0].options'],
    ['one option', ask({}, { options: OPTIONS.slice(1) }), 'questions[1].options'],
    ['seven options', ask({ options: Array(7).fill({ label: 'A' }) }), 'questions[0].options'],
    ['an empty prompt', ask({ prompt: '' }), 'questions[0].prompt'],
    ['a blank prompt', ask({ prompt: ' \n' }), 'questions[0].prompt'],
    ['a prompt left out', { questions: [{ options: OPTIONS }] }, 'questions[0].prompt'],
    ['an empty label', ask({ options: [{ label: '' }, { label: 'B' }] }), 'questions[0].options[0].label'],
    ['a label left out', ask({ options: [{ label: 'A' }, {}] }), 'questions[0].options[1].label'],
    ['a title that is no text', ask({ title: 5 }), 'questions[0].title'],
  ])('CREATE-COUNT: %s is an error', (_what, raw, field) => {
    expect(fieldOf(raw)).toBe(field);
  });

  it('CREATE-COUNT: one to four questions of two to six options are fine', () => {
    expect(fieldOf(ask({}))).toBe('accepted');
    expect(fieldOf(ask({}, {}, {}, { options: Array(6).fill({ label: 'A' }) }))).toBe('accepted');
  });

  const option = (changes: object) => [{ label: 'A', ...changes }, { label: 'B' }];
  it.each<[number, string, (text: string) => object]>([
    [200, 'questions[0].title', (title) => ask({ title })],
    [4000, 'questions[0].prompt', (prompt) => ask({ prompt })],
    [200, 'questions[0].options[0].label', (label) => ask({ options: option({ label }) })],
    [1000, 'questions[0].options[0].description', (description) => ask({ options: option({ description }) })],
    [16_000, 'context', (context) => ({ ...ask({}), context })],
  ])('CREATE-SIZES: %d code points are the most for %s', (max, field, withText) => {
    expect(fieldOf(withText('😀'.repeat(max)))).toBe('accepted');
    expect(fieldOf(withText('x'.repeat(max + 1)))).toBe(field);
    expect(fieldOf(withText('😀'.repeat(max + 1)))).toBe(field);
  });

  it.each<[string, (text: string) => object]>([
    ['questions[0].title', (title) => ask({ title })],
    ['questions[0].prompt', (prompt) => ask({ prompt })],
    ['questions[0].options[0].label', (label) => ask({ options: option({ label }) })],
    ['questions[0].options[0].description', (description) => ask({ options: option({ description }) })],
    ['context', (context) => ({ ...ask({}), context })],
  ])('BAD-TEXT: U+0000 and lone surrogates are refused in %s', (field, withText) => {
    for (const text of ['a\u0000b', '\ud800', 'a\udc00']) expect(fieldOf(withText(text))).toBe(field);
  });

  it.each<[string, unknown]>([
    ['question', { ...ask({}), question: [] }],
    ['questions[0].name', ask({ name: 'x' })],
    ['questions[0].options[1].value', ask({ options: [{ label: 'A' }, { label: 'B', value: 1 }] })],
  ])('UNKNOWN-FIELDS: %s is an error', (field, raw) => {
    expect(fieldOf(raw)).toBe(field);
  });

  it('CREATE-COUNT: the schema accepts exactly what the input classes accept, and completing throws nothing else', () => {
    const schema = schemaOf(BundleInput);
    const accepts = new Ajv2020({ strict: true }).compile(schema);
    fc.assert(
      fc.property(jsonNear(schema), (raw) => {
        let accepted = true;
        try {
          validateInput(BundleInput, raw);
        } catch {
          accepted = false;
        }
        expect(accepts(raw)).toBe(accepted);
        expect(fieldOf(raw)).not.toBe('');
      }),
      { numRuns: 1000 },
    );
  });
});

describe('the same request again', () => {
  const questions = read(ask({ title: 'T' }, { id: 'b', options: [{ label: 'A', description: 'D' }, { label: 'B' }] }));
  const rowsOf = (asked: readonly Question[], context: string): BundleRow[] =>
    asked.map((question, index) =>
      readBundleRow(
        stored({
          id: `m${index}`,
          metadata: newMetadata({ pendingId: PENDING_ID, question, index, total: asked.length, context }),
        }),
      ),
    );

  it('CREATE-DEDUP: is recognised in the rows, read in any order, after defaults', () => {
    const rows = rowsOf(questions, 'C');
    expect(sameRequest(rows, questions, 'C')).toBe(true);
    expect(sameRequest([...rows].reverse(), questions, 'C')).toBe(true);
    const spelt = ask(
      { id: 'q1', title: 'T', options: [{ option_id: 'q1_opt1', label: 'Yes', description: '' }, { label: 'No' }] },
      { id: 'b', title: '', options: [{ label: 'A', description: 'D' }, { label: 'B' }] },
    );
    expect(sameRequest(rows, read(spelt), 'C')).toBe(true);
  });

  it.each<[string, (asked: Question[]) => Question[], string]>([
    ['context', (asked) => asked, 'c'],
    ['no context', (asked) => asked, ''],
    ['order', (asked) => [...asked].reverse(), 'C'],
    ['number of questions', (asked) => asked.slice(0, 1), 'C'],
    ['one question more', (asked) => [...asked, ...asked.slice(0, 1)], 'C'],
    ['id', ([first, ...rest]) => [{ ...first!, id: 'x' }, ...rest], 'C'],
    ['title', ([first, ...rest]) => [{ ...first!, title: 't' }, ...rest], 'C'],
    ['prompt', ([first, ...rest]) => [{ ...first!, prompt: 'Well? ' }, ...rest], 'C'],
    ['order of options', ([first, ...rest]) => [{ ...first!, options: [...first!.options].reverse() }, ...rest], 'C'],
    ['number of options', ([first, ...rest]) => [{ ...first!, options: first!.options.slice(1) }, ...rest], 'C'],
    ...(['option_id', 'label', 'description'] as const).map(
      (key): [string, (asked: Question[]) => Question[], string] => [
        key,
        ([first, ...rest]) => [
          { ...first!, options: first!.options.map((item) => ({ ...item, [key]: 'x' })) },
          ...rest,
        ],
        'C',
      ],
    ),
  ])('CREATE-DEDUP: another %s is another request', (_what, change, context) => {
    expect(sameRequest(rowsOf(questions, 'C'), change(questions), context)).toBe(false);
  });

  it('CREATE-DEDUP: rows that cannot be read are no request at all', () => {
    expect(sameRequest([], questions, '')).toBe(false);
    expect(sameRequest([readBundleRow(stored({ metadata: '[]' }))], questions, '')).toBe(false);
  });
});

describe('the context of an ask', () => {
  it.each<[Parameters<typeof contextFrom>[0], string]>([
    [{}, ''],
    [{ context: 'C' }, 'C'],
    [{ context_paragraphs: [] }, ''],
    [{ context: 'C', context_paragraphs: [] }, 'C'],
    [{ context: 'C', context_paragraphs: ['one'] }, 'one'],
    [{ context: 'C', context_paragraphs: ['one', 'two\nlines', 'three'] }, 'one\n\ntwo\nlines\n\nthree'],
    [{ context_paragraphs: ['one', '', ' ', 'two'] }, 'one\n\ntwo'],
    [{ context: 'C', context_paragraphs: ['', ' '] }, 'C'],
  ])('ASK-CONTEXT: %j is %j', (input, context) => {
    expect(contextFrom(input)).toBe(context);
  });

  it('ASK-CONTEXT: paragraphs are bounded together', () => {
    const paragraph = '😀'.repeat(7999);
    expect(contextFrom({ context_paragraphs: [paragraph, paragraph] })).toBe(`${paragraph}\n\n${paragraph}`);
    expect(() => contextFrom({ context_paragraphs: [paragraph, `${paragraph}x`] })).toThrow(
      new ValidationError('context_paragraphs', 'must not be longer than 16000 characters together'),
    );
  });
});
