import type { Instant } from './clock.js';
import { ValidationError } from './domain-error.js';
import { isStorableText } from './text.js';

/** The key of the last thing on a page; the next page holds what is greater by (createdAt, id) (D6, L9). */
export interface PagePosition {
  readonly createdAt: Instant;
  readonly id: string;
}

const VERSION = 1;
// PostgreSQL knows no year 0.
const INSTANT = /^(?!0000)\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

/** Opaque to callers and safe in a URL. One position has exactly one cursor. */
export function encodeCursor({ createdAt, id }: PagePosition): string {
  return Buffer.from(JSON.stringify([VERSION, createdAt, id])).toString('base64url');
}

/**
 * @param field what the cursor is called in the input
 * @throws ValidationError naming `field` for anything but a cursor that was issued, `''` included (L13)
 */
export function decodeCursor(text: string, field = 'cursor'): PagePosition {
  const position = positionOf(text);
  // Comparing with the one encoding refuses other versions and spellings: parts, padding, white space, broken UTF-8.
  if (position === undefined || encodeCursor(position) !== text) {
    throw new ValidationError(field, 'is not a cursor that was returned as next_cursor');
  }
  return position;
}

function positionOf(text: string): PagePosition | undefined {
  const parts = parse(Buffer.from(text, 'base64url').toString('utf8'));
  if (!Array.isArray(parts)) return undefined;
  const [, createdAt, id] = parts as unknown[];
  if (typeof createdAt !== 'string' || typeof id !== 'string') return undefined;
  return isInstant(createdAt) && id !== '' && isStorableText(id) ? { createdAt, id } : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isInstant(text: string): boolean {
  if (!INSTANT.test(text)) return false;
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString() === text;
}
