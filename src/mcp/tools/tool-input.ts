import type { InputClass } from '../../common/input/fields.js';
import { validateInput } from '../../common/input/validate-input.js';

/** How errors name the whole input of a tool. */
const ROOT = 'arguments';

/** @throws ValidationError */
export function toolInput<T extends object>(type: InputClass<T>, raw: unknown): T {
  return validateInput(type, raw, ROOT);
}

/**
 * The same for an input that names something the caller may not see: that is told before what is wrong with the rest
 * (404 before 400, A3). `authorise` is asked only then; otherwise whoever uses the input asks.
 *
 * @throws ValidationError; what `authorise` throws
 */
export async function toolInputAfterAccess<T extends object>(
  type: InputClass<T>,
  raw: unknown,
  idField: keyof T & string,
  authorise: (id: string) => Promise<unknown>,
): Promise<T> {
  try {
    return toolInput(type, raw);
  } catch (error) {
    const id = textIn(raw, idField);
    if (id !== undefined) await authorise(id);
    throw error;
  }
}

/** The text that a member of the raw input is, if it is one. */
export function textIn(raw: unknown, field: string): string | undefined {
  if (typeof raw !== 'object' || raw === null || !Object.hasOwn(raw, field)) return undefined;
  const value = (raw as Record<string, unknown>)[field];
  return typeof value === 'string' ? value : undefined;
}
