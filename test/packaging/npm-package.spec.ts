import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sourcePaths } from '../architecture/source-files.js';
import { installByLinks, MANIFEST, pack } from './package-copy.js';
import { run, tryServer } from './trial.js';

describe('PACKAGE: what npm pack makes', () => {
  let folder: string;
  let installed: string;
  let command: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'clarion-package-'));
    installed = await installByLinks(await pack(folder), join(folder, 'installed'));
    command = join(installed, MANIFEST.bin['clarion'] ?? '');
    // npm does so for whatever is a command.
    chmodSync(command, 0o755);
  }, 300_000);

  afterAll(() => rmSync(folder, { recursive: true }));

  const emptyFolder = () => mkdtempSync(join(folder, 'elsewhere-'));

  it('has all that is compiled, but the demo, and what a reader needs, and nothing else', () => {
    const compiled = sourcePaths('src', 'migrations')
      .filter((path) => !path.startsWith('src/demo/'))
      .map((path) => join('dist', path.replace(/\.ts$/, '.js')));
    const documents = ['.env.example', 'CHANGELOG.md', 'LICENSE', 'README.md', 'docs/operations.md'];
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' }).filter((path) =>
      statSync(join(installed, path)).isFile(),
    );
    expect(files.sort()).toEqual([...compiled, ...documents, 'package.json', 'packaging/clarion.service'].sort());
  });

  it('brings nobody a database server: nothing is optional, and nothing of the tests is needed', () => {
    expect(MANIFEST.optionalDependencies).toBeUndefined();
    expect(Object.keys(MANIFEST.dependencies).filter((name) => /embedded|jest|swc|nestjs\/cli/.test(name))).toEqual([]);
    expect(Object.keys(MANIFEST.scripts).filter((name) => /^(pre|post)?install$/.test(name))).toEqual([]);
  });

  it('START-LINE, SHUTDOWN: its command serves in whatever folder it is called, keeps its data there, and ends with status 0', async () => {
    const elsewhere = emptyFolder();
    const { mailbox, ended } = await tryServer([command], elsewhere);
    expect(mailbox.prompt).toContain('Does it run?');
    expect(ended).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^Clarion listens on \S+, database sqlite:\.\/data\/clarion\.db, [^\n]+\n$/),
      stderr: '',
    });
    expect(readdirSync(elsewhere)).toEqual(['data']);
    expect(readdirSync(installed)).not.toContain('data');
  }, 120_000);

  it('CLI: with arguments its command is the command line', async () => {
    const cwd = emptyFolder();
    expect((await run(command, ['--version'], { cwd })).stdout).toBe(`${MANIFEST.version}\n`);
    expect(await run(command, ['user', 'create', 'ada'], { cwd })).toMatchObject({ stderr: '' });
    expect(readdirSync(cwd)).toEqual(['data']);
    await expect(run(command, ['frobnicate'], { cwd })).rejects.toMatchObject({ code: 2, stdout: '' });
  }, 120_000);
});
