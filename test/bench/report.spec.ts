import { describe, expect, it } from '@jest/globals';
import { MARKERS, reportMarkdown, tableText, withTable, type Report } from '../../bench/lib/report.js';
import { column, ratioRow, single } from '../../bench/lib/results.js';
import { SIZES } from '../../bench/lib/sizes.js';

const REPORT: Report = {
  madeAt: '2026-05-01T10:00:00.000Z',
  seconds: 100,
  profile: 'quick',
  machine: {
    cpu: 'A processor',
    cores: 2,
    memoryGib: 8,
    system: 'Linux 6',
    node: 'v20.0.0',
    sqlite: '3.50.0',
    drivers: { pg: '8.0.0' },
  },
  postgres: { server_version: '18.0', fsync: 'on' },
  sizes: SIZES.quick,
  rows: [
    ratioRow(
      { row: 'bare', database: 'sqlite', measure: 'rejection' },
      column('Clarion', { samples: [3, 4, 5], cpu: 1.5 }),
      column('bare', { samples: [2, 2, 2] }),
      1.6,
    ),
    {
      row: 'statements',
      database: 'postgres',
      measure: 'statements | of a page',
      a: single('50 bundles', 2, ''),
      value: 0,
      shown: '2, 2, 2',
      target: 'constant',
      verdict: 'ok',
    },
  ],
};

describe('the table of the bench', () => {
  it('shows for each row of a database both medians with their quartiles, the ratio, the target and the verdict', () => {
    const lines = tableText('sqlite', REPORT.rows).split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[0]).toBe('SQLite');
    expect(lines[1]?.split(/ {2,}/)).toEqual([
      'measure',
      'compared',
      'median (quartiles)',
      'cpu',
      'ratio',
      'target',
      'verdict',
    ]);
    expect(lines[2]?.split(/ {2,}/)).toEqual([
      'rejection',
      'Clarion',
      '4.00 ms (3.50–4.50)',
      '1.50 ms',
      '2.00×',
      '≤ 1.6×',
      'misses by 0.40×',
    ]);
    expect(lines[3]?.trim()).toMatch(/^bare +2\.00 ms \(2\.00–2\.00\)$/);
  });

  it('takes its place in a document, with where and with what it was made', () => {
    const table = reportMarkdown(REPORT);
    expect(table).toContain('- A processor, 2 cores, 8 GiB, Linux 6');
    expect(table).toContain('- PostgreSQL 18.0, fsync on');
    expect(table).toContain('- quick: smaller sizes');
    expect(table).toContain(
      '| rejection | Clarion<br>bare | 4.00 ms (3.50–4.50)<br>2.00 ms (2.00–2.00) | 1.50 ms | 2.00× |',
    );
    expect(table).toContain('| statements \\| of a page | 50 bundles | 2 |');
    const document = `before\n${MARKERS[0]}\nold\n${MARKERS[1]}\nafter\n`;
    expect(withTable(document, 'new')).toBe(`before\n${MARKERS[0]}\n\nnew\n\n${MARKERS[1]}\nafter\n`);
    expect(() => withTable('nothing', 'new')).toThrow(MARKERS[0]);
  });
});
