import { describe, expect, it } from '@jest/globals';
import { parseBenchArguments, ROW_NAMES, UsageError } from '../../bench/lib/arguments.js';

describe('the command line of the bench', () => {
  it('measures everything on both databases unless told otherwise', () => {
    expect(parseBenchArguments([])).toMatchObject({
      profile: 'full',
      databases: ['sqlite', 'postgres'],
      rows: ROW_NAMES,
      fresh: false,
    });
  });

  it('takes sizes, a database, rows and files', () => {
    const args = [
      '--quick',
      '--database',
      'postgres',
      '--only',
      'mcp',
      '--only',
      'bare',
      '--json',
      'a.json',
      '--fresh',
    ];
    expect(parseBenchArguments(args)).toMatchObject({
      profile: 'quick',
      databases: ['postgres'],
      rows: ['mcp', 'bare'],
      json: 'a.json',
      fresh: true,
    });
    expect(parseBenchArguments(['--help'])).toBe('help');
  });

  it.each([
    [['--quik'], '--quik'],
    [['--database', 'mysql'], 'mysql'],
    [['--only', 'everything'], 'everything'],
    [['--json', ''], '--json'],
    [['--quick', '--smoke'], '--smoke'],
    [['--json'], '--json'],
    [['something'], 'something'],
  ])('refuses %j in one line that names it', (args, named) => {
    let said: unknown;
    try {
      parseBenchArguments(args);
    } catch (error) {
      said = error;
    }
    expect(said).toBeInstanceOf(UsageError);
    expect((said as Error).message).toContain(named);
    expect((said as Error).message).not.toContain('\n');
  });
});
