import { describe, expect, it } from '@jest/globals';
import { parse } from 'dotenv';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ENV_VARIABLES, loadEnv } from '../../src/config/env.js';
import { ROOT, sourcePaths } from './source-files.js';

const DOCUMENTS = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'docs/operations.md',
  ...readdirSync(join(ROOT, 'docs/adr')).map((name) => `docs/adr/${name}`),
];

const SOURCES = new Set(sourcePaths('src', 'test', 'migrations').map((path) => basename(path)));

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = '']) => found);

describe.each(DOCUMENTS)('%s', (document) => {
  const text = read(document);

  it('names only files and folders that exist', () => {
    const paths = matches(text, /(?<![\w/.-])((?:src|test|migrations|docs|scripts|bench|\.ci)\/[\w./-]*\w)/g);
    const links = matches(text, /\]\((?!https?:|#)([^)#]+)\)/g).map((link) => join(dirname(document), link));
    expect([...paths, ...links].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('names only source files that exist, where it leaves the folder out', () => {
    const names = matches(text, /`([\w.-]+\.ts)`/g);
    expect(names.filter((name) => !SOURCES.has(name))).toEqual([]);
  });

  it('names only npm scripts that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = matches(text, /npm run (?:-s )?([\w:-]+)/g);
    const short = matches(text, /npm (start|test)\b/g);
    expect([...named, ...short].filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

describe('ARCHITECTURE.md', () => {
  it('has every folder of src in its table', () => {
    const folders = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const text = read('ARCHITECTURE.md');
    expect(folders.map(({ name }) => `\`src/${name}/\``).filter((name) => !text.includes(name))).toEqual([]);
  });
});

describe('CONFIG: .env.example', () => {
  const text = read('.env.example');
  const settings = [...text.matchAll(/^(#?)([A-Z][A-Z_]*)=(.*)$/gm)].map(([, off, name = '', value = '']) => ({
    name,
    value,
    isOff: off === '#',
  }));

  it('has every variable that is read, in the same order, and no other', () => {
    expect(settings.map(({ name }) => name)).toEqual(ENV_VARIABLES);
  });

  it('shows the default of each; copied as it is, it changes nothing', () => {
    const defaults = loadEnv({});
    expect(loadEnv(parse(text))).toEqual(defaults);
    // Those that depend on others are switched off, with the value that they have when nothing is set.
    expect(loadEnv(Object.fromEntries(settings.map(({ name, value }) => [name, value])))).toEqual(defaults);
    for (const { name, value } of settings) expect([name, loadEnv({ [name]: value })]).toEqual([name, defaults]);
  });

  it('says something about each', () => {
    const paragraphs = text.split('\n\n');
    for (const name of ENV_VARIABLES) {
      const paragraph = paragraphs.find((each) => new RegExp(`^#?${name}=`, 'm').test(each)) ?? '';
      expect([name, /^# \w.{20,}/m.test(paragraph)]).toEqual([name, true]);
    }
  });
});
