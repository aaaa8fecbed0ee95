import fc, { type Arbitrary } from 'fast-check';
import { ODD_TEXTS } from './odd-texts.js';

/** As much of JSON Schema as the product publishes. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
}

/** What no schema says, by the name of a property: that a text is the id of something that exists, say. */
export type Hint = (bySchema: Arbitrary<unknown>, schema: JsonSchema) => Arbitrary<unknown>;
export type Hints = Readonly<Record<string, Hint>>;

/** Values that a schema allows, bounds and odd texts included. Throws for a keyword's value that it cannot read. */
export function valuesOf(schema: JsonSchema, hints: Hints = {}): Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices !== undefined) return fc.oneof(...choices.map((choice) => valuesOf(choice, hints)));
  switch (schema.type) {
    case 'object':
      return objectsOf(schema, hints);
    case 'array':
      return fc.array(valuesOf(schema.items ?? {}, hints), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 5, (schema.minItems ?? 0) + 5),
      });
    case 'string':
      return textsOf(schema);
    case 'integer':
      return integersOf(schema);
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case 'boolean':
      return fc.boolean();
    case undefined:
      return fc.jsonValue({ maxDepth: 2 });
    default:
      throw new Error(`no values for the type ${JSON.stringify(schema.type)}`);
  }
}

function objectsOf({ properties = {}, required = [] }: JsonSchema, hints: Hints): Arbitrary<unknown> {
  const values = Object.entries(properties).map(([name, schema]): [string, Arbitrary<unknown>] => {
    const bySchema = valuesOf(schema, hints);
    return [name, Object.hasOwn(hints, name) ? (hints[name]?.(bySchema, schema) ?? bySchema) : bySchema];
  });
  return fc.record(Object.fromEntries(values), { requiredKeys: [...required], noNullPrototype: true });
}

function integersOf({ minimum, maximum, default: usual }: JsonSchema): Arbitrary<number> {
  const min = minimum ?? Number.MIN_SAFE_INTEGER;
  const max = maximum ?? Number.MAX_SAFE_INTEGER;
  const bounds = [min, max, 0, 1, -1, 2 ** 31, typeof usual === 'number' ? usual : min];
  return fc.oneof(
    fc.constantFrom(...bounds.filter((value) => value >= min && value <= max)),
    fc.integer({ min: Math.max(min, -1000), max: Math.min(max, 1000) }),
  );
}

/** Texts of the odd kind are kept where the pattern allows them; other patterns are generated from. */
function textsOf(schema: JsonSchema): Arbitrary<string> {
  const pattern = new RegExp(schema.pattern ?? '', 'u');
  const isAllowed = (text: string): boolean => {
    const length = [...text].length;
    return pattern.test(text) && length >= (schema.minLength ?? 0) && length <= (schema.maxLength ?? Infinity);
  };
  const isAllowedText = (text: unknown): text is string => typeof text === 'string' && isAllowed(text);
  const known = [...ODD_TEXTS, ...(schema.examples ?? [])].filter(isAllowedText);
  const long = longest(schema).filter(isAllowedText);
  const isFreeText = schema.pattern === undefined || schema.pattern.includes('\\u0000');
  const generated = isFreeText
    ? fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }).map((text) => `x${text}`)
    : fc.stringMatching(new RegExp(schema.pattern, 'u'));
  const allowed = generated.filter(isAllowed);
  return fc.oneof(
    { arbitrary: allowed, weight: 60 },
    ...(known.length === 0 ? [] : [{ arbitrary: fc.constantFrom(...known), weight: 39 }]),
    // Seldom: every list in which they are is long from then on.
    ...(long.length === 0 ? [] : [{ arbitrary: fc.constantFrom(...long), weight: 1 }]),
  );
}

function longest({ maxLength }: JsonSchema): string[] {
  // The largest ones take long to send, and are no other code path.
  return maxLength === undefined || maxLength > 20_000 ? [] : ['x'.repeat(maxLength), '\u{1f600}'.repeat(maxLength)];
}
