import 'reflect-metadata';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsObject,
  IsString,
  Max,
  Min,
  ValidateBy,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import { assertUsablePattern, textProblem, textSchema } from './field-rules.js';
import type { JsonSchema, TextRules } from './field-rules.js';

/** An input class: its fields are declared with the decorators below, it has no constructor parameters. */
export type InputClass<T extends object = object> = new () => T;

/** What one field's JSON looks like, beside the class-validator rules that its decorator has registered. */
export type Field = { readonly optional: boolean; readonly note: FieldNote } & (
  | { readonly kind: 'scalar'; readonly scalar: 'text' | 'integer' | 'boolean'; readonly schema: JsonSchema }
  | { readonly kind: 'object'; readonly type: () => InputClass }
  | {
      readonly kind: 'list';
      readonly item: (() => InputClass) | JsonSchema;
      readonly min: number;
      readonly max: number;
    }
);

export interface FieldNote {
  readonly description?: string;
  readonly example?: unknown;
  /** Shown in the schema only; whoever reads the input applies it. */
  readonly default?: unknown;
}

interface FieldOptions extends FieldNote {
  /** May be left out. `null` is an error all the same. */
  readonly optional?: boolean;
}

const FIELDS = Symbol('clarion:input-fields');

/** The declared fields of a class and of those it extends. */
export function fieldsOf(type: InputClass): ReadonlyMap<string, Field> {
  return (Reflect.getMetadata(FIELDS, type) as Map<string, Field> | undefined) ?? new Map<string, Field>();
}

export function TextField(options: FieldOptions & TextRules = {}): PropertyDecorator {
  assertUsablePattern(options);
  const rule = problemRule('text', (value) => textProblem(value, options));
  return declare({ kind: 'scalar', scalar: 'text', schema: textSchema(options), ...common(options) }, [rule]);
}

/**
 * The id of something that the caller names. Any text at all: one that cannot be an id is not found like any other
 * (`usableId`), so that no answer tells the two apart (A3).
 */
export function IdField(options: FieldOptions = {}): PropertyDecorator {
  return declare({ kind: 'scalar', scalar: 'text', schema: { type: 'string' }, ...common(options) }, [
    IsString({ message: 'must be text' }),
  ]);
}

export function IntegerField(options: FieldOptions & { readonly min?: number; readonly max?: number } = {}) {
  const { min, max } = options;
  const schema = {
    type: 'integer',
    ...(min === undefined ? {} : { minimum: min }),
    ...(max === undefined ? {} : { maximum: max }),
  };
  return declare({ kind: 'scalar', scalar: 'integer', schema, ...common(options) }, [
    IsInt({ message: 'must be a whole number' }),
    ...(min === undefined ? [] : [Min(min, { message: `must be at least ${min}` })]),
    ...(max === undefined ? [] : [Max(max, { message: `must be at most ${max}` })]),
  ]);
}

export function BooleanField(options: FieldOptions = {}): PropertyDecorator {
  return declare({ kind: 'scalar', scalar: 'boolean', schema: { type: 'boolean' }, ...common(options) }, [
    IsBoolean({ message: 'must be true or false' }),
  ]);
}

export function ChoiceField(options: FieldOptions & { readonly values: readonly string[] }): PropertyDecorator {
  const schema = { type: 'string', enum: [...options.values] };
  return declare({ kind: 'scalar', scalar: 'text', schema, ...common(options) }, [
    IsIn(options.values, { message: `must be one of ${options.values.join(', ')}` }),
  ]);
}

interface ListOptions extends FieldOptions {
  readonly min?: number;
  /** Always given: a list without a bound would be walked whole. */
  readonly max: number;
}

/** A list of objects (`() => Item`) or of texts (`'text'`, whose rules are in `item`). */
export function ListField(
  item: (() => InputClass) | 'text',
  options: ListOptions & { readonly item?: TextRules },
): PropertyDecorator {
  const { min = 0, max } = options;
  const size = [
    IsArray({ message: 'must be a list' }),
    ArrayMinSize(min, { message: min === 1 ? 'must not be empty' : `must have at least ${min} entries` }),
    ArrayMaxSize(max, { message: `must not have more than ${max} entries` }),
  ];
  if (item !== 'text') {
    return declare({ kind: 'list', item, min, max, ...common(options) }, [...size, ValidateNested(), Type(item)]);
  }
  const rules = options.item ?? {};
  assertUsablePattern(rules);
  const entries = problemRule('texts', (value) => firstEntryProblem(value, rules));
  return declare({ kind: 'list', item: textSchema(rules), min, max, ...common(options) }, [...size, entries]);
}

export function ObjectField(type: () => InputClass, options: FieldOptions = {}): PropertyDecorator {
  return declare({ kind: 'object', type, ...common(options) }, [
    IsObject({ message: 'must be an object' }),
    ValidateNested(),
    Type(type),
  ]);
}

function common(options: FieldOptions): { optional: boolean; note: FieldNote } {
  const { description, example } = options;
  return {
    optional: options.optional === true,
    note: {
      ...(description === undefined ? {} : { description }),
      ...(example === undefined ? {} : { example }),
      ...(options.default === undefined ? {} : { default: options.default }),
    },
  };
}

function declare(field: Field, rules: readonly PropertyDecorator[]): PropertyDecorator {
  return (target, key) => {
    const type = target.constructor as InputClass;
    const own = new Map(fieldsOf(type)).set(String(key), field);
    Reflect.defineMetadata(FIELDS, own, type);
    for (const rule of rules) rule(target, key);
    // Not IsOptional: that would let null through.
    if (field.optional) ValidateIf((_, value) => value !== undefined)(target, key);
  };
}

/** A class-validator rule whose message is computed from the value. A leading `[i]` continues the field's path. */
function problemRule(name: string, problem: (value: unknown) => string | undefined): PropertyDecorator {
  return ValidateBy({
    name,
    validator: {
      validate: (value) => problem(value) === undefined,
      defaultMessage: (args) => problem(args?.value) ?? 'is invalid',
    },
  });
}

function firstEntryProblem(value: unknown, rules: TextRules): string | undefined {
  if (!Array.isArray(value)) return undefined;
  for (const [index, entry] of value.entries()) {
    const problem = textProblem(entry, rules);
    if (problem !== undefined) return `[${index}] ${problem}`;
  }
  return undefined;
}
