import { describe, expect, it } from '@jest/globals';
import { UsageError } from '../../src/cli/cli-error.js';
import { parseLifetime } from '../../src/cli/lifetime.js';

describe('CLI: --expires', () => {
  it.each([
    ['90m', 5_400_000],
    ['12h', 43_200_000],
    ['30d', 2_592_000_000],
    ['36500d', 3_153_600_000_000],
  ])('reads %s as %d ms', (text, milliseconds) => {
    expect(parseLifetime(text)).toBe(milliseconds);
  });

  it.each(['', '30', 'd', '0d', '-1d', '1.5h', '30 d', '30D', '2w', '1h30m', '36501d', '99999999d', '١d', '30d\n'])(
    'refuses %j and names itself',
    (text) => {
      expect(() => parseLifetime(text)).toThrow(UsageError);
      expect(() => parseLifetime(text)).toThrow('--expires must be whole minutes, hours or days');
    },
  );
});
