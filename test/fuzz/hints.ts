import fc, { type Arbitrary } from 'fast-check';
import { Ref, type RefKind } from './ref.js';
import { valuesOf, type Hint, type Hints, type JsonSchema } from './schema-values.js';

/** Mostly of the case's own estate, because everything else is refused before it gets anywhere. */
const idOf =
  (kind: RefKind, ...others: readonly Arbitrary<unknown>[]): Hint =>
  () =>
    fc.oneof({ arbitrary: fc.constant(new Ref(kind)), weight: 9 }, ...others);

const answers: Hint = (bySchema) =>
  fc.oneof(
    {
      arbitrary: fc
        .array(fc.record({ option: fc.nat(3), text: texts() }), { minLength: 1, maxLength: 4 })
        .map((picks) => new Ref('answers', 'own', picks)),
      weight: 9,
    },
    bySchema,
  );

function texts(): Arbitrary<string> {
  return fc.string({ unit: 'binary', maxLength: 30 }).filter((text) => !/[\0\p{Surrogate}]/u.test(text));
}

/** Ids are unique within their list, which a schema cannot say. */
const questions: Hint = (bySchema) => bySchema.map((list) => withoutRepeated(list, 'id', questionOptions));

const questionOptions = (question: Entry): Entry => ({
  ...question,
  options: withoutRepeated(question['options'], 'option_id', (option) => option),
});

type Entry = Readonly<Record<string, unknown>>;

function withoutRepeated(list: unknown, key: string, then: (entry: Entry) => Entry): unknown {
  const seen = new Set<unknown>();
  return (list as Entry[]).map((entry) => {
    const { [key]: id, ...rest } = entry;
    const isFirst = id !== undefined && !seen.has(id);
    seen.add(id);
    return then(isFirst ? entry : rest);
  });
}

const resume: Hint = (bySchema, schema) =>
  fc.oneof(
    fc.constant({ mode: 'pull' }),
    fc.record({ mode: fc.constant('webhook'), url: fc.constant(new Ref('webhook')) }),
    fc.record({
      mode: fc.constant('webhook'),
      url: fc.constant(new Ref('webhook')),
      secret: valuesOf(schema.properties?.['secret'] ?? {}),
    }),
    // A text that is no URL, or a URL without its mode: refused.
    bySchema,
  );

const DAY_MS = 86_400_000;

const createdSince: Hint = (bySchema) =>
  fc.oneof(
    { arbitrary: fc.constantFrom('', '2026-01-31T09:00:00Z', '0001-01-01T00:00:00.000+14:00'), weight: 3 },
    {
      arbitrary: fc.integer({ min: 0, max: 40_000 }).map((day) => new Date(day * DAY_MS).toISOString()),
      weight: 3,
    },
    bySchema,
  );

/** Of the right form, and of nobody's page. */
const forgedCursors: Arbitrary<string> = fc
  .tuple(
    fc.constantFrom<unknown>(1, 0, 2, '1', null),
    fc.constantFrom<unknown>(
      '2026-01-31T09:00:00.000Z',
      '9999-12-31T23:59:59.999Z',
      '0001-01-01T00:00:00.000Z',
      '-271821-04-20T00:00:00.000Z',
      '2026-02-30T00:00:00.000Z',
      5,
    ),
    fc.constantFrom<unknown>('', 'x', '\u0000', '\ud800', '\u{1f600}', "' OR 1=1", 'x'.repeat(1000), 7, []),
  )
  .map((parts) => Buffer.from(JSON.stringify(parts)).toString('base64url'));

const cursor: Hint = (bySchema) =>
  fc.oneof(
    { arbitrary: fc.constant(''), weight: 4 },
    { arbitrary: fc.constant(new Ref('cursor')), weight: 6 },
    { arbitrary: forgedCursors, weight: 1 },
    bySchema,
  );

/** Longer ones are a test of patience. */
const mailboxWait: Hint = () => fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1);

const clientMessageId: Hint = (bySchema) =>
  fc.oneof({ arbitrary: bySchema, weight: 3 }, fc.constantFrom('again-1', 'again-2'));

/** What the names of fields say and their schemas don't. */
export const HINTS: Hints = {
  workspace_id: idOf('workspace', fc.constant(''), fc.constant(new Ref('workspace', 'other'))),
  task_id: idOf('task'),
  session_id: idOf('session'),
  pending_id: idOf('bundle', fc.constant(new Ref('bundle', 'sibling'))),
  answers,
  questions,
  resume,
  created_since: createdSince,
  cursor,
  wait: mailboxWait,
  client_message_id: clientMessageId,
};

/** Objects that a schema allows and that keep to {@link HINTS}; an answer is not a rejection as well. */
export function inputsOf(schema: JsonSchema): Arbitrary<unknown> {
  const values = valuesOf(schema, HINTS);
  const { properties = {} } = schema;
  if (!('answers' in properties && 'rejected' in properties)) return values;
  const answered: Arbitrary<readonly string[]> = fc.constant(['rejected', 'reject_reason']);
  const declined: Arbitrary<readonly string[]> = fc.constant(['answers']);
  return fc
    .tuple(
      valuesOf({ ...schema, required: [...(schema.required ?? []), 'answers', 'rejected'] }, HINTS),
      fc.oneof(answered, answered, declined),
    )
    .map(([value, left]) => {
      const kept = Object.entries(value as Entry).filter(([name]) => !left.includes(name));
      return Object.fromEntries(kept.map(([name, item]) => [name, name === 'rejected' ? true : item]));
    });
}
