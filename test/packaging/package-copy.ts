import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../architecture/source-files.js';
import { run } from './trial.js';

/** What the package is made from, which is also all that the image's build gets to see. */
export const SOURCES = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
  .split('\n')
  .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));

export interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly bin: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;

/**
 * Runs `npm pack` on a copy of the sources in `folder`, and builds there, so that nothing of this checkout changes. The
 * types are left to the build.
 *
 * @returns the path of the package
 */
export async function pack(folder: string): Promise<string> {
  const copy = join(folder, 'copy');
  for (const path of SOURCES) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    cpSync(join(ROOT, path), join(copy, path), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const nest = join(copy, 'nest-cli.json');
  writeFileSync(nest, readFileSync(nest, 'utf8').replace('"typeCheck": true', '"typeCheck": false'));
  const packed = await run('npm', ['pack', '--pack-destination', folder], { cwd: copy, maxBuffer: 2 ** 24 });
  return join(folder, packed.stdout.trim().split('\n').at(-1) ?? '');
}

/**
 * Puts the package where npm would, without asking a registry: every package that it says it needs, and no other, is a
 * link to ours.
 *
 * @returns the folder in which it is installed
 */
export async function installByLinks(tarball: string, folder: string): Promise<string> {
  const modules = join(folder, 'node_modules');
  const installed = join(modules, 'clarion');
  mkdirSync(installed, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  for (const name of Object.keys(MANIFEST.dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  return installed;
}
