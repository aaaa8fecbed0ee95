import fc from 'fast-check';
import type { JsonSchema } from '../../../src/common/input/field-rules.js';

const HOSTILE_KEYS = ['__proto__', 'constructor', 'toString', 'prototype', '', 'nme'];
const ODD_TEXT = ['', ' ', '\u0000', '\ud800', 'a\udc00b', '😀', '😀😀😀', '\u2028', 'x'.repeat(9), '\ufe0f\ufe0fab'];

/**
 * JSON close to what a schema accepts: mostly right, and wrong in one of the ways people and attackers get wrong.
 * Plain arbitrary JSON would be refused at the first key nearly always, and so would test nothing behind it.
 */
export function jsonNear(schema: JsonSchema): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 40, arbitrary: right(schema) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<unknown>(null, true, 0, 1.5, -1, 1e30, '', 'x', [], {}, [[]], [null], [{}]),
    },
    { weight: 1, arbitrary: fc.jsonValue() },
  );
}

function right(schema: JsonSchema): fc.Arbitrary<unknown> {
  switch (schema['type']) {
    case 'object':
      return nearObject(schema);
    case 'array':
      return fc.oneof(
        { weight: 9, arbitrary: listOf(schema, schema['minItems'] as number | undefined, 0) },
        listOf(schema, 0, 1),
      );
    case 'integer':
      return fc.oneof(
        { weight: 8, arbitrary: fc.integer({ min: 0, max: 10 }) },
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
      );
    case 'boolean':
      return fc.boolean();
    default: {
      const fitting =
        'enum' in schema ? fc.constantFrom(...(schema['enum'] as string[])) : fc.stringMatching(/^[a-c_.]{1,3}$/);
      return fc.oneof({ weight: 20, arbitrary: fitting }, fc.constantFrom(...ODD_TEXT), fc.string({ unit: 'binary' }));
    }
  }
}

function nearObject(schema: JsonSchema): fc.Arbitrary<unknown> {
  const properties = schema['properties'] as Record<string, JsonSchema>;
  const entries = Object.entries(properties).map(([key, property]) =>
    fc.tuple(
      fc.constant(key),
      jsonNear(property),
      fc.integer({ min: 0, max: 19 }).map((n) => n > 0),
    ),
  );
  const extra = fc.oneof(
    { weight: 15, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...HOSTILE_KEYS), fc.jsonValue()).map((pair) => [pair]) },
  );
  return fc.tuple(fc.tuple(...entries), extra).map(([known, unknown]) => {
    // Through text, as a request comes: only JSON.parse makes an own `__proto__`.
    const pairs = [...known.filter(([, , kept]) => kept), ...unknown];
    const text = pairs.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',');
    return JSON.parse(`{${text}}`) as unknown;
  });
}

function listOf(schema: JsonSchema, minLength = 0, beyond: number): fc.Arbitrary<unknown> {
  const maxLength = (schema['maxItems'] as number) + beyond;
  return fc.array(jsonNear(schema['items'] as JsonSchema), { minLength, maxLength });
}
