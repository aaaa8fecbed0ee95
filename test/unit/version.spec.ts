import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { VERSION } from '../../src/common/version.js';

it('the version that clients are told is that of package.json', () => {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as object;
  expect(manifest).toMatchObject({ version: VERSION });
});
