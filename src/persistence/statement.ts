import { createHash } from 'node:crypto';
import { isStorableText } from '../common/text.js';
import type { SqlValue } from './unit-of-work.js';

/** A statement or a value that can never be right: a defect in our own code, on either engine alike. */
export class InvalidStatementError extends Error {
  constructor(problem: string) {
    super(`invalid statement: ${problem}`);
    this.name = 'InvalidStatementError';
  }
}

/** What is known about a statement's text, the same on both engines. */
export interface Statement {
  /** As written, with `$1 … $n`. */
  readonly postgresText: string;
  /** Under which a PostgreSQL connection keeps it prepared; undefined for texts beyond a bound, sent whole each time. */
  readonly postgresName: string | undefined;
  /** With `?1 … ?n`: the driver binds `$n` by order of appearance, silently wrong. */
  readonly sqliteText: string;
  /** False for an INSERT, UPDATE or DELETE without RETURNING: it answers with a count alone. */
  readonly returnsRows: boolean;
  /** The highest placeholder; exactly so many values must be given. */
  readonly parameterCount: number;
}

// Literals, quoted names and comments are skipped; placeholders, words and separators are looked at.
const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$(\d+)|[A-Za-z_][A-Za-z_0-9]*|;|\?/g;
const CHANGES = new Set(['INSERT', 'UPDATE', 'DELETE']);

// Texts are constants of ours; the bound only guards against lists of ever new lengths.
const CACHE_LIMIT = 1000;
const cache = new Map<string, Statement>();

// Connections never forget a prepared statement, so there is a bound; it is several times the texts that we have.
const NAME_LIMIT = 500;
const names = new Set<string>();

function nameOf(sql: string): string | undefined {
  // Of the text alone, so that no name can ever stand for another text.
  const name = `clarion_${createHash('sha256').update(sql).digest('hex').slice(0, 24)}`;
  if (names.size < NAME_LIMIT) names.add(name);
  return names.has(name) ? name : undefined;
}

/** @throws InvalidStatementError */
export function statementOf(sql: string): Statement {
  const known = cache.get(sql);
  if (known !== undefined) return known;
  const statement = read(sql);
  if (cache.size >= CACHE_LIMIT) cache.clear();
  cache.set(sql, statement);
  return statement;
}

function read(sql: string): Statement {
  let parameterCount = 0;
  let first = '';
  let changes = false;
  let returning = false;
  const sqliteText = sql.trim().replace(TOKEN, (token: string, placeholder: string | undefined) => {
    if (placeholder !== undefined) {
      parameterCount = Math.max(parameterCount, Number(placeholder));
      return `?${placeholder}`;
    }
    // SQLite would run the first of several statements and drop the rest without a word.
    if (token === ';') throw new InvalidStatementError('it holds more than one');
    if (token === '?') throw new InvalidStatementError('placeholders are written $1');
    if (/^[A-Za-z_]/.test(token)) {
      const word = token.toUpperCase();
      if (first === '') first = word;
      if (CHANGES.has(word)) changes = true;
      if (word === 'RETURNING') returning = true;
    }
    return token;
  });
  if (first === 'WITH' && changes && !returning) {
    throw new InvalidStatementError('a WITH that changes rows needs RETURNING, or its count is lost on SQLite');
  }
  return {
    postgresText: sql,
    postgresName: nameOf(sql),
    sqliteText,
    returnsRows: returning || !CHANGES.has(first),
    parameterCount,
  };
}

const INT32_LIMIT = 2 ** 31;

/**
 * Both drivers turn what they do not know into something else without a word (NULL, "[object Object]", a REAL).
 *
 * @throws InvalidStatementError naming the placeholder and the kind of value, never the value
 */
export function checkValues(statement: Statement, values: readonly SqlValue[]): void {
  if (values.length !== statement.parameterCount) {
    throw new InvalidStatementError(`it has ${statement.parameterCount} placeholders and ${values.length} values`);
  }
  values.forEach((value: unknown, index) => {
    const problem = problemOf(value);
    if (problem !== undefined) throw new InvalidStatementError(`the value of $${index + 1} is ${problem}`);
  });
}

function problemOf(value: unknown): string | undefined {
  if (value === null) return undefined;
  switch (typeof value) {
    case 'string':
      return isStorableText(value) ? undefined : 'text with U+0000 or a lone surrogate';
    case 'number':
      return Number.isInteger(value) && value >= -INT32_LIMIT && value < INT32_LIMIT
        ? undefined
        : 'a number that is not a 32-bit integer';
    case 'object':
      return value instanceof Date ? 'a Date (bind its ISO text)' : 'an object';
    default:
      return `of type ${typeof value}`;
  }
}
