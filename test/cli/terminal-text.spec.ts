import { describe, expect, it } from '@jest/globals';
import { table } from '../../src/cli/table.js';
import { terminalLine, terminalText } from '../../src/cli/terminal-text.js';

describe('text of others on a terminal', () => {
  it('loses what could drive the terminal or turn the reading order, and nothing else', () => {
    expect(terminalText('a\tb\nc \x1b[2J \x07 \x9b31m \r \u202e \u2066 \u2028')).toBe('a\tb\nc �[2J � �31m � � � �');
    expect(terminalText('Grüße, 世界, 👩‍👧, مرحبا')).toBe('Grüße, 世界, 👩‍👧, مرحبا');
  });

  it('fits one line', () => {
    expect(terminalLine('  two\nlines\r\n and\ttabs ')).toBe('two lines and tabs');
  });

  it('stands in columns', () => {
    expect(
      table(
        ['ID', 'NAME'],
        [
          ['1', 'a\nb'],
          ['1000', ''],
        ],
      ),
    ).toBe('ID    NAME\n1     a b\n1000');
  });
});
