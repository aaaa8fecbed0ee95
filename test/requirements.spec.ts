import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REQUIREMENTS } from './requirements.js';
import { titlesIn, wordsOf } from './support/cited-rules.js';

const TESTS = import.meta.dirname;

const ids = new Set(Object.keys(REQUIREMENTS));
const families = new Set([...ids].filter((id) => id.includes('-')).map((id) => id.slice(0, id.indexOf('-'))));

/** A letter of the rules with a number, or a longer id of a family that we have. */
function looksLikeId(word: string): boolean {
  if (/^[PMDRANL]\d{1,2}[a-z]?$/.test(word)) return true;
  const [family = ''] = word.split('-');
  return families.has(family) && /^[A-Z]+(-[A-Z]+)+$/.test(word);
}

const titles = readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.spec.ts'))
  .flatMap((path) => titlesIn(path, readFileSync(join(TESTS, path), 'utf8')));

describe('the list of requirements', () => {
  const cited = new Set(titles.flatMap(({ title }) => wordsOf(title)));

  it.each(Object.entries(REQUIREMENTS))('%s is cited by a test (%s)', (id) => {
    expect(cited.has(id)).toBe(true);
  });

  it('knows every rule that a title cites', () => {
    const unknown = titles.flatMap(({ file, title }) =>
      wordsOf(title)
        .filter((word) => looksLikeId(word) && !ids.has(word))
        .map((word) => `${word} in ${file}: ${title}`),
    );
    expect(unknown).toEqual([]);
  });

  it('says each rule once, in a sentence', () => {
    const sentences = Object.values(REQUIREMENTS);
    expect(new Set(sentences).size).toBe(sentences.length);
    expect(sentences.filter((sentence) => !/^\S.{20,}\.$/.test(sentence))).toEqual([]);
  });
});

describe('reading titles', () => {
  const read = (source: string) => titlesIn('sample.spec.ts', source).map(({ title }) => title);

  it('finds those of tests and suites, of tables and of our own wrappers', () => {
    const source = `
      describeEachEngine('A', () => {
        it('B', () => {});
        it.each([['no title']])('C %s', () => {});
        test.each\`x\`(\`D \${1} E\`, () => {});
        it('F ' + "G", async () => { expect(call('no title')).toBe('no title'); iterate('no title'); });
        it(TITLE, () => {});
      });
      describeEngine('sqlite', 'H', (engine) => {});`;
    expect(read(source)).toEqual(['A', 'B', 'C %s', 'D … E', 'F G', 'H']);
  });

  it('counts none that does not run', () => {
    expect(read("it.skip('A', f); describe.skip('B', () => { it('C', f); }); it.todo('D'); it('E', f);")).toEqual([
      'E',
    ]);
  });

  it('takes whole words as citations', () => {
    expect(wordsOf('R2b/N6a: A3–A5 CREATE-IDS, X-Request-Id (L1)')).toEqual([
      'R2b',
      'N6a',
      'A3',
      'A5',
      'CREATE-IDS',
      'X-Request-Id',
      'L1',
    ]);
    expect(['R99', 'L1d', 'CREATE-NONE'].map(looksLikeId)).toEqual([true, true, true]);
    expect(['V8', 'JSON-RPC', 'R', 'create', 'CREATE-ids'].map(looksLikeId)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ]);
  });
});
