import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ValidationError } from '../../src/common/domain-error.js';
import { decodeCursor, encodeCursor } from '../../src/common/page-cursor.js';

const NOON = '2026-03-01T12:00:00.000Z';
const PENDING_ID = '5f0c7a52-1f1b-4f9e-8a53-0d4c0f7f6c11';

const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const GOOD = encodeCursor({ createdAt: NOON, id: PENDING_ID });

describe('a page cursor', () => {
  it('L9: gives back the position it was made of, to the millisecond', () => {
    fc.assert(
      fc.property(
        fc.date({
          min: new Date('0001-01-01T00:00:00.000Z'),
          max: new Date('9999-12-31T23:59:59.999Z'),
          noInvalidDate: true,
        }),
        fc.string({ unit: 'grapheme', minLength: 1 }).filter((id) => !id.includes('\u0000')),
        (date, id) => {
          const position = { createdAt: date.toISOString(), id };
          const cursor = encodeCursor(position);
          expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
          expect(decodeCursor(cursor)).toEqual(position);
        },
      ),
    );
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['words', 'abc'],
    ['JSON that is not encoded', JSON.stringify([1, NOON, PENDING_ID])],
    ['base64 of no JSON', encode('hello')],
    ['another version', encode([2, NOON, PENDING_ID])],
    ['a version as text', encode(['1', NOON, PENDING_ID])],
    ['a part too few', encode([1, NOON])],
    ['a part too many', encode([1, NOON, PENDING_ID, 1])],
    ['an object', encode({ 0: 1, 1: NOON, 2: PENDING_ID, length: 3 })],
    ['null', encode('null')],
    ['a number as id', encode([1, NOON, 5])],
    ['an empty id', encode([1, NOON, ''])],
    ['NUL in the id', encode([1, NOON, 'a\u0000'])],
    ['a lone surrogate in the id', encode('[1,"2026-03-01T12:00:00.000Z","\\ud800"]')],
    ['a date alone', encode([1, '2026-03-01', PENDING_ID])],
    ['a time without milliseconds', encode([1, '2026-03-01T12:00:00Z', PENDING_ID])],
    ['microseconds', encode([1, '2026-03-01T12:00:00.000000Z', PENDING_ID])],
    ['an offset', encode([1, '2026-03-01T12:00:00.000+01:00', PENDING_ID])],
    ['a day that does not exist', encode([1, '2026-02-30T12:00:00.000Z', PENDING_ID])],
    ['hour 24', encode([1, '2026-02-28T24:00:00.000Z', PENDING_ID])],
    ['month 13', encode([1, '2026-13-01T12:00:00.000Z', PENDING_ID])],
    ['the year 0, which PostgreSQL does not know', encode([1, '0000-01-01T00:00:00.000Z', PENDING_ID])],
    ['a year of five digits', encode([1, '+010000-01-01T00:00:00.000Z', PENDING_ID])],
    ['white space inside the JSON', encode(`[1, "${NOON}","${PENDING_ID}"]`)],
    ['an escape that need not be', encode(`[1,"${NOON}","\\u0061"]`)],
    ['white space before', ` ${GOOD}`],
    ['a line end after', `${GOOD}\n`],
    ['a stray character inside', `${GOOD.slice(0, 5)}!${GOOD.slice(5)}`],
    ['padding', `${GOOD}=`],
    ['a character too many', `${GOOD}A`],
    ['a character too few', GOOD.slice(0, -1)],
    ['the other base64 alphabet', encode([1, NOON, '~~~???ooo']).replaceAll('_', '/').replaceAll('-', '+')],
    [
      'broken UTF-8',
      Buffer.from(Buffer.from(JSON.stringify([1, NOON, 'é'])).filter((byte) => byte !== 0xa9)).toString('base64url'),
    ],
  ])('L13: %s is an error that names cursor', (_what, text) => {
    expect(() => decodeCursor(text)).toThrow(
      new ValidationError('cursor', 'is not a cursor that was returned as next_cursor'),
    );
  });

  it('L13: any text is a position or a ValidationError naming the field it was given for', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.base64String(),
      fc.json().map(encode),
      fc.tuple(fc.jsonValue(), fc.jsonValue(), fc.jsonValue()).map(encode),
      fc
        .tuple(fc.nat(GOOD.length - 1), fc.constantFrom(...'Aa0_-=/+ '))
        .map(([at, char]) => GOOD.slice(0, at) + char + GOOD.slice(at + 1)),
    );
    fc.assert(
      fc.property(texts, (text) => {
        try {
          expect(encodeCursor(decodeCursor(text, 'after'))).toBe(text);
        } catch (error) {
          expect(error).toBeInstanceOf(ValidationError);
          expect((error as ValidationError).field).toBe('after');
        }
      }),
      { numRuns: 2000 },
    );
  });
});
