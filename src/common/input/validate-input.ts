import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import type { ValidationError as Violation } from 'class-validator';
import { ValidationError } from '../domain-error.js';
import { fieldsOf } from './fields.js';
import type { InputClass } from './fields.js';

/**
 * An instance of the class from JSON of any kind.
 *
 * The shape is checked first: class-validator lets `__proto__`, `constructor` and null through, reports unknown
 * nested fields badly, and class-transformer would walk deep junk. What reaches them has the declared shape only.
 *
 * @param root names the whole input in errors about it, e.g. `body`
 * @throws ValidationError naming the first offending field by its path; never anything else
 */
export function validateInput<T extends object>(type: InputClass<T>, raw: unknown, root = 'body'): T {
  assertShape(type, raw, '', root);
  // Most routes take no query and some no body: there is nothing left to look at.
  if (fieldsOf(type).size === 0) return new type();
  const instance = plainToInstance(type, raw);
  const [violation] = validateSync(instance, { forbidUnknownValues: false, stopAtFirstError: true });
  if (violation !== undefined) throw toValidationError(violation);
  return instance;
}

function assertShape(type: InputClass, raw: unknown, path: string, name: string): asserts raw is object {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    throw new ValidationError(name, 'must be an object');
  }
  const fields = fieldsOf(type);
  for (const key of Object.keys(raw)) {
    if (!fields.has(key)) throw new ValidationError(`${path}${shown(key)}`, 'is not a known field');
  }
  for (const [key, field] of fields) {
    const at = `${path}${key}`;
    const value: unknown = Object.hasOwn(raw, key) ? (raw as Record<string, unknown>)[key] : undefined;
    if (value === undefined) {
      if (!field.optional) throw new ValidationError(at, 'is required');
      continue;
    }
    if (value === null) throw new ValidationError(at, 'must not be null');
    if (field.kind === 'object') assertShape(field.type(), value, `${at}.`, at);
    else if (field.kind === 'list') assertListShape(field, value, at);
    else if (typeof value === 'object') throw new ValidationError(at, SCALAR_PROBLEM[field.scalar]);
  }
}

const SCALAR_PROBLEM = {
  text: 'must be text',
  integer: 'must be a whole number',
  boolean: 'must be true or false',
} as const;

function assertListShape(
  field: { readonly item: (() => InputClass) | object; readonly max: number },
  value: unknown,
  at: string,
): void {
  if (!Array.isArray(value)) throw new ValidationError(at, 'must be a list');
  if (value.length > field.max) throw new ValidationError(at, `must not have more than ${field.max} entries`);
  for (const [index, entry] of value.entries()) {
    const entryAt = `${at}[${index}]`;
    if (typeof field.item === 'function')
      assertShape((field.item as () => InputClass)(), entry, `${entryAt}.`, entryAt);
    else if (typeof entry === 'object') throw new ValidationError(entryAt, SCALAR_PROBLEM.text);
  }
}

/** A key as it may stand in a sentence: a caller's own text, but short and printable. */
function shown(key: string): string {
  return /^[\w$.-]{1,64}$/.test(key) ? key : JSON.stringify(key.slice(0, 64));
}

/** The first leaf of class-validator's tree, with the path that leads to it. */
function toValidationError(violation: Violation): ValidationError {
  let current = violation;
  let path = current.property;
  while (current.constraints === undefined && current.children?.[0] !== undefined) {
    current = current.children[0];
    path += /^\d+$/.test(current.property) ? `[${current.property}]` : `.${current.property}`;
  }
  const problem = Object.values(current.constraints ?? {})[0] ?? 'is invalid';
  const entry = /^(\[\d+\]) (.*)$/s.exec(problem);
  return entry === null
    ? new ValidationError(path, problem)
    : new ValidationError(`${path}${entry[1] ?? ''}`, entry[2] ?? problem);
}
