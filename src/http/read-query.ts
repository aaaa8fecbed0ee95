import { ValidationError } from '../common/domain-error.js';
import { fieldsOf } from '../common/input/fields.js';
import type { InputClass } from '../common/input/fields.js';

/**
 * The query string as the JSON that it stands for: digits become a number where the class declares one, `true` and
 * `false` a boolean; everything else stays text, for validation to judge (`limit=` is no whole number).
 *
 * @throws ValidationError naming a parameter that is given twice
 */
export function readQuery(url: string, type: InputClass | undefined): Record<string, unknown> {
  const start = url.indexOf('?');
  if (start < 0) return {};
  const fields = type === undefined ? undefined : fieldsOf(type);
  const values = new Map<string, unknown>();
  for (const [name, text] of new URLSearchParams(url.slice(start))) {
    if (values.has(name)) throw new ValidationError(name, 'must be given once');
    const field = fields?.get(name);
    values.set(name, field?.kind === 'scalar' ? read(field.scalar, text) : text);
  }
  // Not by assignment: a parameter may be called `__proto__`.
  return Object.fromEntries(values);
}

function read(scalar: 'text' | 'integer' | 'boolean', text: string): unknown {
  if (scalar === 'integer' && /^-?\d+$/.test(text)) {
    // Beyond the safe integers the size is all that is left to tell.
    return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(text)));
  }
  if (scalar === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
