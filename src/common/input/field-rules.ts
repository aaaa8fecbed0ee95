import { codePointLength, isStorableText, STORABLE_TEXT_PATTERN } from '../text.js';

/** A closed JSON Schema (draft 2020-12 subset), as OpenAPI 3.1 and MCP take it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ObjectSchema extends JsonSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, JsonSchema>>;
  readonly required: readonly string[];
  readonly additionalProperties: false;
}

export interface TextRules {
  /** Code points. */
  readonly min?: number;
  /** Code points. */
  readonly max?: number;
  /** `false`: at least one character that is not white space. */
  readonly blank?: boolean;
  /** An anchored expression in `u` mode that leaves out U+0000 and surrogates, and words for it in `patternHint`. */
  readonly pattern?: string;
  /** Completes "must …", e.g. `be 1 to 64 of the characters A-Z a-z 0-9 _ . -`. */
  readonly patternHint?: string;
}

// Leading white space, one other character, the rest: one way to match, so linear.
const NOT_BLANK_PATTERN = '^\\s*[^\\s\\u0000\\ud800-\\udfff][^\\u0000\\ud800-\\udfff]*$';

export function textSchema(rules: TextRules): JsonSchema {
  return {
    type: 'string',
    ...(rules.min === undefined ? {} : { minLength: rules.min }),
    ...(rules.max === undefined ? {} : { maxLength: rules.max }),
    pattern: rules.pattern ?? (rules.blank === false ? NOT_BLANK_PATTERN : STORABLE_TEXT_PATTERN),
  };
}

/** What is wrong with a text, or undefined. Length first: nothing after it looks at an unbounded string. */
export function textProblem(value: unknown, rules: TextRules): string | undefined {
  if (typeof value !== 'string') return 'must be text';
  if (rules.max !== undefined && value.length > rules.max && codePointLength(value) > rules.max) {
    return `must not be longer than ${rules.max} characters`;
  }
  if (rules.min !== undefined && codePointLength(value) < rules.min) {
    return rules.min === 1 ? 'must not be empty' : `must be at least ${rules.min} characters long`;
  }
  if (!isStorableText(value)) return 'must not contain U+0000 or a lone surrogate';
  if (rules.blank === false && !/\S/u.test(value)) return 'must not be blank';
  if (rules.pattern !== undefined && !new RegExp(rules.pattern, 'u').test(value)) {
    return `must ${rules.patternHint ?? `match ${rules.pattern}`}`;
  }
  return undefined;
}

/** @throws TypeError at class definition when a pattern would let unstorable text through or contradict `blank` */
export function assertUsablePattern(rules: TextRules): void {
  if (rules.pattern === undefined) return;
  const pattern = new RegExp(rules.pattern, 'u');
  const letsThrough = ['\u0000', '\ud800', 'a\u0000', 'a\udfff', '\u0000a'].some((text) => pattern.test(text));
  const contradictsBlank = rules.blank === false && [' ', '\t ', ''].some((text) => pattern.test(text));
  if (letsThrough || contradictsBlank) throw new TypeError(`the pattern ${rules.pattern} accepts too much`);
}
