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
 * (404 before 400, A3). `authorise` is asked only then, with whatever text there is; otherwise whoever uses the input asks.
 *
 * @throws ValidationError; what `authorise` throws
 */
export async function toolInputAfterAccess<T extends object>(
  type: InputClass<T>,
  raw: unknown,
  authorise: (named: { readonly [Field in keyof T]?: string }) => Promise<unknown>,
): Promise<T> {
  try {
    return toolInput(type, raw);
  } catch (error) {
    await authorise(textsIn(raw));
    throw error;
  }
}

/** The members of the raw input that are text. */
function textsIn<T extends object>(raw: unknown): { readonly [Field in keyof T]?: string } {
  if (typeof raw !== 'object' || raw === null) return {};
  return Object.fromEntries(Object.entries(raw).filter(([, value]) => typeof value === 'string')) as {
    readonly [Field in keyof T]?: string;
  };
}
