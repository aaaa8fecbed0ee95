import { afterAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MARKERS, type Report } from '../../bench/lib/report.js';

const folder = mkdtempSync(join(tmpdir(), 'clarion-bench-'));
// PostgreSQL's own user has to get to its data in there.
chmodSync(folder, 0o755);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function bench(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, ['--import', './test/support/run-typescript.js', 'bench/run.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, stdout, stderr };
}

/** The rows of 5.4, by the words that tell them apart. */
const MEASURES = [
  /^answer over REST, rejection$/,
  /^answer over REST, live answer$/,
  /^answer over REST, detached answer$/,
  /^rejection, product against the same \d+ statements bare$/,
  /^live answer, product against the same \d+ statements bare$/,
  /^detached answer, product against the same \d+ statements bare$/,
  /^first page of 50, \d+ superseded questions behind it$/,
  /^first page of 50, \d+ superseded questions ahead of it$/,
  /^statements for a page of 50 bundles/,
  /callers answering the same bundle/,
  /^(\d+) callers answering \1 bundles/,
  /^memory for each of \d+ waiting agents, heap$/,
  /^memory for each of \d+ waiting agents, resident$/,
  /^rejection while others wait$/,
  /^live answer while others wait$/,
  /^rejection over MCP against REST/,
  /^not found, answer$/,
  /^not found, get$/,
  /^not found, wait$/,
];

describe('npm run bench', () => {
  it('prints and writes every row of 5.4 for both databases with its target, and leaves nothing behind', async () => {
    const json = join(folder, 'figures.json');
    const document = join(folder, 'performance.md');
    writeFileSync(document, `# Performance\n${MARKERS.join('\nnothing yet\n')}\n`);
    const ran = await bench('--smoke', '--cache', folder, '--json', json, '--markdown', document);

    expect({ status: ran.status, complaint: /^bench: .*/ms.exec(ran.stderr)?.[0] }).toEqual({ status: 0 });
    const report = JSON.parse(readFileSync(json, 'utf8')) as Report;
    expect(report).toMatchObject({
      profile: 'smoke',
      machine: { node: process.version, cores: expect.any(Number), sqlite: expect.stringMatching(/^3\./) },
      postgres: { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' },
    });
    for (const database of ['sqlite', 'postgres']) {
      const rows = report.rows.filter((row) => row.database === database);
      const named = rows.map((row) => MEASURES.findIndex((measure) => measure.test(row.measure)));
      expect([...named].sort((a, b) => a - b)).toEqual(MEASURES.map((_, index) => index));
      for (const row of rows) {
        expect(row.target).not.toBe('');
        expect(row.verdict).toMatch(/^(ok|misses by .+)$/);
        expect(Number.isFinite(row.value)).toBe(true);
        expect(ran.stdout).toContain(row.measure);
        expect(readFileSync(document, 'utf8')).toContain(row.measure);
      }
      expect(rows.find(({ row }) => row === 'statements')).toMatchObject({ shown: '2, 2, 2', verdict: 'ok' });
    }
    expect(ran.stdout).toContain('smoke: tiny sizes, the ratios mean nothing');
    expect(readdirSync(folder).filter((name) => name.startsWith('run-'))).toEqual([]);
  }, 900_000);

  it('says in one line what it cannot use, and ends with 2', async () => {
    expect(await bench('--only', 'everything')).toEqual({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/^bench: --only must be one of [^\n]+\n$/),
    });
    expect(await bench('--smoke', '--markdown', join(folder, 'absent.md'))).toMatchObject({ status: 2, stdout: '' });
  });
});
