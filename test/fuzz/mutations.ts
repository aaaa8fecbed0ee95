import fc, { type Arbitrary } from 'fast-check';
import { ODD_TEXTS } from './odd-texts.js';
import { Ref } from './ref.js';

/** A body as it is sent: JSON in which references are still to be put in, or bytes. */
export type Body = { readonly json: unknown } | { readonly bytes: (text: string) => Buffer; readonly of: unknown };

const NOT_AN_OBJECT: readonly unknown[] = [null, true, false, 0, '', 'text', [], [[]], [{}], 1e308, -0, 2 ** 53, 1.5];

/** Names that an object has without having been given them, and names that a copy by assignment loses. */
const ODD_KEYS: readonly string[] = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'then',
  'toJSON',
  'length',
  '',
  ' ',
  '0',
  '-1',
  'ID',
  'taskId',
  'answer',
  'a.b',
  'a[0]',
  '$ref',
  '$where',
  '\u0000',
  '\u202e',
  '\u{1f600}',
  'x'.repeat(300),
];

const deep = (levels: number, wrap: (inner: unknown) => unknown): unknown =>
  Array.from({ length: levels }).reduce((inner: unknown) => wrap(inner), 0);

const ODD_VALUES: readonly unknown[] = [
  ...NOT_AN_OBJECT,
  ...ODD_TEXTS,
  {},
  { length: 3 },
  { toString: 1, valueOf: 2 },
  Object.fromEntries([['__proto__', { admin: true }]]),
  Number.MAX_SAFE_INTEGER + 2,
  -Number.MAX_VALUE,
  Number.MIN_VALUE,
  deep(15, (inner) => [inner]),
  deep(16, (inner) => ({ a: inner })),
  deep(17, (inner) => [inner]),
  deep(2000, (inner) => [inner]),
  Array.from({ length: 101 }, () => 'x'),
  Array.from({ length: 6000 }, () => 0),
  'x'.repeat(70_000),
];

type Path = readonly (string | number)[];

/** The value with one thing in it gone wrong. */
export function mutated(values: Arbitrary<unknown>): Arbitrary<unknown> {
  return fc.tuple(values, fc.nat(), fc.nat(), fc.nat()).map(([value, where, how, what]) => {
    const paths = [...pathsIn(value)];
    return mutateAt(value, paths[where % paths.length] ?? [], how, what);
  });
}

function mutateAt(value: unknown, path: Path, how: number, what: number): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return mutate(value, how, what);
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) => (index === first ? mutateAt(item, rest, how, what) : item));
  }
  const entries = Object.entries(value as object).map(([key, item]: [string, unknown]): [string, unknown] => [
    key,
    key === first ? mutateAt(item, rest, how, what) : item,
  ]);
  return Object.fromEntries(entries);
}

function mutate(value: unknown, how: number, what: number): unknown {
  const odd = ODD_VALUES[what % ODD_VALUES.length];
  const key = ODD_KEYS[what % ODD_KEYS.length] ?? '';
  if (Array.isArray(value)) {
    const any = value as unknown[];
    return [odd, [...any, ...any], any.slice(1), [...any, odd], Object.fromEntries(any.entries())][how % 5];
  }
  if (isContainer(value)) {
    const entries = Object.entries(value);
    const lost = what % Math.max(1, entries.length);
    return [
      odd,
      Object.fromEntries([...entries, [key, odd]]),
      Object.fromEntries([...entries, [key, 'x']]),
      Object.fromEntries(entries.filter((_, index) => index !== lost)),
      Object.fromEntries(entries.map(([name, item], index) => [index === lost ? name.toUpperCase() : name, item])),
      [value],
      entries,
    ][how % 7];
  }
  return [odd, odd, [value], { value }, value instanceof Ref ? odd : JSON.stringify(value), null][how % 6];
}

function* pathsIn(value: unknown, path: Path = []): Generator<Path> {
  yield path;
  if (!isContainer(value)) return;
  const entries: Iterable<readonly [string | number, unknown]> = Array.isArray(value)
    ? (value as unknown[]).entries()
    : Object.entries(value);
  for (const [key, item] of entries) yield* pathsIn(item, [...path, key]);
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Ref);
}

/** What becomes of the text of a body on its way. */
const SPELLINGS: readonly ((text: string) => Buffer)[] = [
  (text) => Buffer.from(text.slice(0, -1)),
  (text) => Buffer.from(text.slice(0, Math.floor(text.length / 2))),
  (text) => Buffer.from(`${text}${text}`),
  (text) => Buffer.from(`${text},`),
  (text) => Buffer.from(`\ufeff${text}`),
  (text) => Buffer.from(text.replaceAll('"', "'")),
  (text) => Buffer.from(text.replace(/^\{/, '{/* comment */')),
  (text) => Buffer.from(text.replace(/\}$/, ',}')),
  (text) => Buffer.from(text.replace(/:"[^"]*"/, ':NaN')),
  (text) => Buffer.from(text.replace(/:"[^"]*"/, ':01')),
  (text) => Buffer.from(text.replace(/:"[^"]*"/, ':1e999')),
  (text) => Buffer.from(text.replace(/:"([^"\\]*)"/, ':"\\ud800$1"')),
  (text) => Buffer.from(text.replace(/:"([^"\\]*)"/, ':"\\u0000$1"')),
  (text) => Buffer.from(text.replace(/:"([^"\\]*)"/, ':"\u0001$1"')),
  // A key twice: the last one counts to a parser, the first one to whoever looked before.
  (text) => Buffer.from(text.replace(/^\{("[^"]+":)/, '{$1null,$1')),
  (text) => Buffer.from(text.replace(/^\{/, '{"__proto__":{"polluted":true},')),
  (text) => Buffer.from(text, 'utf16le'),
  (text) =>
    Buffer.concat([Buffer.from(text.slice(0, -2)), Buffer.from([0xff, 0xfe, 0xc3]), Buffer.from(text.slice(-2))]),
  (text) =>
    Buffer.concat([Buffer.from(text.slice(0, -2)), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from(text.slice(-2))]),
  (text) => Buffer.from(`${' '.repeat(20_000)}${text}`),
  (text) => Buffer.from(`${text}${' '.repeat(1_048_577)}`),
  () => Buffer.from('['.repeat(20_000)),
  () => Buffer.from(`${'['.repeat(20_000)}${']'.repeat(20_000)}`),
  () => Buffer.from(''),
  () => Buffer.from('null'),
  () => Buffer.from('a=b&c=d'),
  () => Buffer.from([0x1f, 0x8b, 0x08, 0x00]),
  () => Buffer.alloc(64),
];

/** The value's JSON, misspelt. */
export function misspelt(values: Arbitrary<unknown>): Arbitrary<Body> {
  return fc.record({ of: values, bytes: fc.constantFrom(...SPELLINGS) });
}
