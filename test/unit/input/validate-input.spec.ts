import { describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { ValidationError } from '../../../src/common/domain-error.js';
import {
  BooleanField,
  ChoiceField,
  IntegerField,
  ListField,
  ObjectField,
  TextField,
} from '../../../src/common/input/fields.js';
import { assertBoundedJson } from '../../../src/common/input/json-bounds.js';
import { schemaOf } from '../../../src/common/input/schema-of.js';
import { validateInput } from '../../../src/common/input/validate-input.js';
import { jsonNear } from './json-near-schema.js';

class LeafInput {
  @TextField({ min: 1, max: 3, blank: false, description: 'What it is called', example: 'Tea' })
  name!: string;

  @TextField({ optional: true, pattern: '^[a-z_.]{1,4}$' })
  code?: string;
}

class BranchInput {
  @TextField({ max: 4 })
  title!: string;

  @IntegerField({ min: 0, max: 10, optional: true })
  count?: number;

  @BooleanField({ optional: true })
  urgent?: boolean;

  @ChoiceField({ values: ['up', 'down'], optional: true })
  direction?: string;

  @ListField(() => LeafInput, { min: 1, max: 2 })
  leaves!: LeafInput[];

  @ListField('text', { max: 2, optional: true, item: { min: 1, max: 3 } })
  tags?: string[];

  @ObjectField(() => LeafInput, { optional: true })
  main?: LeafInput;
}

class ExtendedInput extends BranchInput {
  @IntegerField({ optional: true })
  any?: number;
}

class EmptyInput {}

const VALID = { title: 'x', leaves: [{ name: 'a' }] };

function refusal(raw: unknown, type: new () => object = BranchInput): string {
  try {
    validateInput(type, raw);
  } catch (error) {
    if (error instanceof ValidationError) return error.message;
    throw error;
  }
  throw new Error('was accepted');
}

const json = (text: string): unknown => JSON.parse(text);

describe('UNKNOWN-FIELDS, BAD-TYPES, BAD-TEXT: validateInput', () => {
  it('makes instances, nested ones too, and leaves absent fields absent', () => {
    const input = validateInput(BranchInput, { ...VALID, main: { name: 'b' } });
    expect(input).toBeInstanceOf(BranchInput);
    expect(input.leaves[0]).toBeInstanceOf(LeafInput);
    expect(input.main).toBeInstanceOf(LeafInput);
    expect(Object.keys(input)).toEqual(['title', 'leaves', 'main']);
  });

  it.each([
    [null, 'body must be an object'],
    [[], 'body must be an object'],
    ['text', 'body must be an object'],
    [{ leaves: [{ name: 'a' }] }, 'title is required'],
    [{ ...VALID, title: null }, 'title must not be null'],
    [{ ...VALID, count: null }, 'count must not be null'],
    [{ ...VALID, tilte: 'x' }, 'tilte is not a known field'],
    [json('{"title":"x","leaves":[{"name":"a"}],"__proto__":{}}'), '__proto__ is not a known field'],
    [json('{"title":"x","leaves":[{"name":"a"}],"constructor":1}'), 'constructor is not a known field'],
    [{ ...VALID, 'a b': 1 }, '"a b" is not a known field'],
    [{ ...VALID, leaves: [{ name: 'a', nmae: 'b' }] }, 'leaves[0].nmae is not a known field'],
    [json('{"title":"x","leaves":[{"name":"a","__proto__":1}]}'), 'leaves[0].__proto__ is not a known field'],
    [{ ...VALID, main: { name: 'a', toString: 1 } }, 'main.toString is not a known field'],
    [{ ...VALID, leaves: [] }, 'leaves must not be empty'],
    [{ ...VALID, leaves: {} }, 'leaves must be a list'],
    [{ ...VALID, leaves: [null] }, 'leaves[0] must be an object'],
    [{ ...VALID, leaves: [[{ name: 'a' }]] }, 'leaves[0] must be an object'],
    [{ ...VALID, leaves: [{ name: 'a' }, { name: '' }] }, 'leaves[1].name must not be empty'],
    [{ ...VALID, leaves: [{ name: 'a' }, { name: ' ' }] }, 'leaves[1].name must not be blank'],
    [{ ...VALID, leaves: Array(3).fill({ name: 'a' }) }, 'leaves must not have more than 2 entries'],
    [{ ...VALID, main: [{ name: 'a' }] }, 'main must be an object'],
    [{ ...VALID, main: { name: 'abcd' } }, 'main.name must not be longer than 3 characters'],
    [{ ...VALID, tags: ['a', 7] }, 'tags[1] must be text'],
    [{ ...VALID, tags: ['a', ''] }, 'tags[1] must not be empty'],
    [{ ...VALID, tags: ['a', {}] }, 'tags[1] must be text'],
    [{ ...VALID, title: 7 }, 'title must be text'],
    [{ ...VALID, title: ['x'] }, 'title must be text'],
    [{ ...VALID, title: 'a\u0000' }, 'title must not contain U+0000 or a lone surrogate'],
    [{ ...VALID, title: '\ud83d' }, 'title must not contain U+0000 or a lone surrogate'],
    [{ ...VALID, count: 1.5 }, 'count must be a whole number'],
    [{ ...VALID, count: '1' }, 'count must be a whole number'],
    [{ ...VALID, count: 11 }, 'count must be at most 10'],
    [{ ...VALID, urgent: 'true' }, 'urgent must be true or false'],
    [{ ...VALID, direction: 'left' }, 'direction must be one of up, down'],
  ])('refuses %j naming the field', (raw, sentence) => {
    expect(refusal(raw)).toBe(sentence);
  });

  it('N8b: counts code points, so that an emoji is one character', () => {
    expect(validateInput(BranchInput, { ...VALID, title: '😀😀😀😀' }).title).toBe('😀😀😀😀');
    expect(refusal({ ...VALID, title: '😀😀😀😀😀' })).toBe('title must not be longer than 4 characters');
  });

  it('takes nothing but {} where no field is declared', () => {
    expect(validateInput(EmptyInput, {})).toBeInstanceOf(EmptyInput);
    expect(refusal({ a: 1 }, EmptyInput)).toBe('a is not a known field');
  });

  it('survives input nested 20,000 levels deep, and a list of 200,000 entries', () => {
    const deep = json(`${'['.repeat(20_000)}${']'.repeat(20_000)}`);
    expect(refusal({ ...VALID, title: deep })).toBe('title must be text');
    expect(refusal({ ...VALID, leaves: deep })).toBe('leaves[0] must be an object');
    expect(refusal({ ...VALID, tags: Array(200_000).fill('a') })).toBe('tags must not have more than 2 entries');
  });

  it('refuses at definition a pattern that would let unstorable text through', () => {
    expect(() => TextField({ pattern: '^[^x]*$' })).toThrow(TypeError);
    expect(() => TextField({ pattern: '^ *$', blank: false })).toThrow(TypeError);
  });
});

describe('schemaOf', () => {
  it('is closed at every level and carries the notes', () => {
    expect(schemaOf(LeafInput)).toEqual({
      type: 'object',
      properties: {
        name: {
          type: 'string',
          minLength: 1,
          maxLength: 3,
          pattern: '^\\s*[^\\s\\u0000\\ud800-\\udfff][^\\u0000\\ud800-\\udfff]*$',
          description: 'What it is called',
          examples: ['Tea'],
        },
        code: { type: 'string', pattern: '^[a-z_.]{1,4}$' },
      },
      required: ['name'],
      additionalProperties: false,
    });
    expect(Object.keys(schemaOf(ExtendedInput).properties)).toContain('title');
    expect(Object.keys(schemaOf(BranchInput).properties)).not.toContain('any');
  });

  it.each([LeafInput, BranchInput, ExtendedInput, EmptyInput])(
    'of %p accepts exactly what the validator accepts',
    (type) => {
      const schema = schemaOf(type);
      const accepts = new Ajv2020({ strict: true }).compile(schema);
      let accepted = 0;
      const property = fc.property(fc.oneof({ weight: 9, arbitrary: jsonNear(schema) }, fc.jsonValue()), (raw) => {
        let problem: string | undefined;
        try {
          validateInput(type, raw);
          accepted += 1;
        } catch (error) {
          if (!(error instanceof ValidationError)) throw error;
          problem = error.message;
        }
        if (accepts(raw) !== (problem === undefined)) {
          throw new Error(`schema and validator differ on ${JSON.stringify(raw)}: ${problem ?? 'accepted'}`);
        }
      });
      fc.assert(property, { numRuns: 4_000 });
      expect(accepted).toBeGreaterThan(100);
    },
  );
});

describe('assertBoundedJson', () => {
  it('refuses JSON that is too deep or too wide, and names the input', () => {
    const bounds = { maxDepth: 2, maxNodes: 4 };
    expect(() => assertBoundedJson([[1]], 'body', bounds)).not.toThrow();
    expect(() => assertBoundedJson([[[]]], 'body', bounds)).toThrow('body must not be nested more than 2 levels deep');
    expect(() => assertBoundedJson([1, 2, 3, 4], 'arguments', bounds)).toThrow(
      'arguments must not hold more than 4 values',
    );
    expect(() => assertBoundedJson('text')).not.toThrow();
    expect(() => assertBoundedJson(json(`${'[1,'.repeat(200_000)}1${']'.repeat(200_000)}`))).toThrow(ValidationError);
  });
});
