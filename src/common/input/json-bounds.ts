import { ValidationError } from '../domain-error.js';

export interface JsonBounds {
  /** Containers inside each other; a scalar has depth 0. */
  readonly maxDepth: number;
  /** Values of any kind, containers included. */
  readonly maxNodes: number;
}

/** The deepest input of ours has 4 levels; the largest (4 questions of 6 options) about 150 values. */
const JSON_BOUNDS: JsonBounds = { maxDepth: 16, maxNodes: 5_000 };

/**
 * Refuses JSON that would be costly to look at: class-validator overflows the stack on deep input and blocks the
 * event loop on wide input. Iterative, and stops at the first value over the bound.
 *
 * @throws ValidationError naming `field`
 */
export function assertBoundedJson(value: unknown, field = 'body', bounds: JsonBounds = JSON_BOUNDS): void {
  let level: readonly object[] = isContainer(value) ? [value] : [];
  let nodes = 1;
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > bounds.maxDepth) {
      throw new ValidationError(field, `must not be nested more than ${bounds.maxDepth} levels deep`);
    }
    const next: object[] = [];
    for (const container of level) {
      const children: readonly unknown[] = Array.isArray(container) ? container : Object.values(container);
      nodes += children.length;
      if (nodes > bounds.maxNodes) {
        throw new ValidationError(field, `must not hold more than ${bounds.maxNodes} values`);
      }
      for (const child of children) if (isContainer(child)) next.push(child);
    }
    level = next;
  }
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
