import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REQUIREMENTS } from '../requirements.js';
import { titlesIn, wordsOf } from '../support/cited-rules.js';
import { isLettered } from './patch.js';
import { PATCHES } from './patches.js';
import { brokenText, ROOT } from './working-copy.js';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

describe('what `npm run test:sabotage` breaks', () => {
  it.each(Object.keys(REQUIREMENTS).filter(isLettered))('%s is broken by a patch', (rule) => {
    expect(PATCHES.some((patch) => patch.rule === rule)).toBe(true);
  });

  it('is promised, and in the product', () => {
    expect(PATCHES.filter(({ rule, file }) => !(rule in REQUIREMENTS) || !/^(src|migrations)\//.test(file))).toEqual(
      [],
    );
  });

  it('is still there, and once', () => {
    const unfit = PATCHES.flatMap((patch) => {
      try {
        brokenText(patch, read(patch.file));
        return [];
      } catch (error) {
        return [`${patch.rule}: ${(error as Error).message}`];
      }
    });
    expect(unfit).toEqual([]);
  });

  it('is cited by a test of the spec that has to notice it', () => {
    const cited = new Map<string, readonly string[]>();
    const uncited = PATCHES.filter(({ rule, spec }) => {
      const words = cited.get(spec) ?? titlesIn(spec, read(spec)).flatMap(({ title }) => wordsOf(title));
      cited.set(spec, words);
      return !words.includes(rule);
    });
    expect(uncited.map(({ rule, spec }) => `${rule} by ${spec}`)).toEqual([]);
  });
});
