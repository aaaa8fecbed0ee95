// Compiles to dist/ unless what is there is newer than every source. Says nothing unless it fails, so that a command
// behind it (npm run -s cli -- token create …) has standard output, and standard error, to itself.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const ROOT = join(import.meta.dirname, '..');
const SOURCES = [
  'src',
  'migrations',
  'nest-cli.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  '.swcrc',
];
// Written when a build is complete: one that was interrupted does not count.
const STAMP = join(ROOT, 'dist', '.built');

function newest(path) {
  const own = statSync(path).mtimeMs;
  if (!statSync(path).isDirectory()) return own;
  return Math.max(own, ...readdirSync(path).map((name) => newest(join(path, name))));
}

// An installation without sources has nothing to build from.
const sources = SOURCES.map((name) => join(ROOT, name)).filter((path) => existsSync(path));
const isNeeded =
  existsSync(join(ROOT, 'src')) && (!existsSync(STAMP) || Math.max(...sources.map(newest)) > statSync(STAMP).mtimeMs);

if (isNeeded) {
  const nest = join(ROOT, 'node_modules', '@nestjs', 'cli', 'bin', 'nest.js');
  const build = spawnSync(process.execPath, [nest, 'build'], { cwd: ROOT, encoding: 'utf8' });
  if (build.status === 0) writeFileSync(STAMP, '');
  else process.stderr.write(`${build.stdout}${build.stderr}`);
  process.exitCode = build.status ?? 1;
}
