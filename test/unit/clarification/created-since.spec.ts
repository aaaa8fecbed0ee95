import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ValidationError } from '../../../src/common/domain-error.js';
import { parseCreatedSince } from '../../../src/clarification/domain/created-since.js';

describe('created_since', () => {
  it.each([
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01t12:00:00z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T12:00:00.5Z', '2026-03-01T12:00:00.500Z'],
    ['2026-03-01T12:00:00.123Z', '2026-03-01T12:00:00.123Z'],
    ['2026-03-01T12:00:00.123000000Z', '2026-03-01T12:00:00.123Z'],
    ['2026-03-01T12:00:00.1230000001Z', '2026-03-01T12:00:00.124Z'],
    ['2026-03-01T12:00:00.0009Z', '2026-03-01T12:00:00.001Z'],
    ['2026-12-31T23:59:59.9991Z', '2027-01-01T00:00:00.000Z'],
    ['2026-03-01T12:00:00+01:00', '2026-03-01T11:00:00.000Z'],
    ['2026-03-01T12:00:00-05:30', '2026-03-01T17:30:00.000Z'],
    ['2026-03-01T00:10:00+14:00', '2026-02-28T10:10:00.000Z'],
    ['2026-03-01T12:00:00-00:00', '2026-03-01T12:00:00.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['1969-07-20T20:17:40.0001Z', '1969-07-20T20:17:40.001Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
    ['2016-12-31T23:59:60.75Z', '2017-01-01T00:00:00.000Z'],
    ['2017-01-01T00:59:60+01:00', '2017-01-01T00:00:00.000Z'],
    ['1969-12-31T23:59:60Z', '1970-01-01T00:00:00.000Z'],
    ['0000-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['0001-01-01T00:00:00+23:59', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.9999-23:59', '9999-12-31T23:59:59.999Z'],
  ])('L8: %s is %s, a part of a millisecond rounded up', (text, instant) => {
    expect(parseCreatedSince(text)).toBe(instant);
  });

  it.each([
    '',
    ' ',
    'yesterday',
    '2026-03-01',
    '2026-03-01T12:00:00',
    '2026-03-01 12:00:00Z',
    '2026-03-01T12:00:00 01:00',
    '2026-03-01T12:00Z',
    '2026-03-01T12Z',
    '2026-03-01T12:00:00.Z',
    '2026-03-01T12:00:00,5Z',
    '2026-03-01T12:00:00+0100',
    '2026-03-01T12:00:00+01',
    '2026-03-01T12:00:00+24:00',
    '2026-03-01T12:00:00+01:60',
    '2026-3-1T12:00:00Z',
    '2026-02-29T12:00:00Z',
    '2026-02-30T12:00:00Z',
    '2026-04-31T12:00:00Z',
    '2026-13-01T12:00:00Z',
    '2026-00-01T12:00:00Z',
    '2026-01-00T12:00:00Z',
    '2026-03-01T24:00:00Z',
    '2026-03-01T12:60:00Z',
    '2026-03-01T12:00:60Z',
    '2016-12-31T23:59:60+01:00',
    '2026-03-01T12:00:61Z',
    '+002026-03-01T12:00:00Z',
    '-0001-03-01T12:00:00Z',
    '1772366400',
    ' 2026-03-01T12:00:00Z',
    '2026-03-01T12:00:00Z\n',
    '２０２６-03-01T12:00:00Z',
  ])('L13: %j is an error that names created_since', (text) => {
    expect(() => parseCreatedSince(text)).toThrow(ValidationError);
    expect(() => parseCreatedSince(text)).toThrow(/^created_since must be an RFC 3339 date-time/);
  });

  it('L8: every instant, in every offset, is itself', () => {
    const dates = fc.date({ min: new Date('0001-01-02'), max: new Date('9999-12-30'), noInvalidDate: true });
    fc.assert(
      fc.property(dates, fc.integer({ min: -1439, max: 1439 }), (date, minutes) => {
        const local = new Date(date.getTime() + minutes * 60_000).toISOString().slice(0, -1);
        const two = (n: number) => String(n).padStart(2, '0');
        const offset = `${minutes < 0 ? '-' : '+'}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
        expect(parseCreatedSince(local + offset)).toBe(date.toISOString());
      }),
    );
  });

  it('L13: any text is an instant that both databases take, or a ValidationError', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/)),
        (text) => {
          try {
            const instant = parseCreatedSince(text);
            expect(instant).toMatch(/^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
          } catch (error) {
            expect(error).toBeInstanceOf(ValidationError);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });
});
