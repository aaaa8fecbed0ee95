// Module hooks: "./x.js" may be "./x.ts", compiled on the way as the build and Jest do.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, URL } from 'node:url';
import { transform } from '@swc/core';

export async function resolve(specifier, context, next) {
  if (specifier.startsWith('.') && specifier.endsWith('.js') && context.parentURL?.endsWith('.ts')) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
    if (existsSync(source)) return { url: source.href, format: 'module', shortCircuit: true };
  }
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context);
  const filename = fileURLToPath(url);
  return { format: 'module', source: await compiled(filename, readFileSync(filename, 'utf8')), shortCircuit: true };
}

/** Each file once in a run of the tests, however many processes need it: compiling costs more than the rest of a start. */
async function compiled(filename, source) {
  const folder = process.env.CLARION_TEST_FOLDER;
  const hash = createHash('sha256').update(`${filename}\0${source}`).digest('hex');
  const kept = folder === undefined ? undefined : join(folder, `compiled-${hash}.js`);
  if (kept !== undefined && existsSync(kept)) return readFileSync(kept, 'utf8');
  const { code } = await transform(source, { filename, swcrc: true, sourceMaps: 'inline' });
  if (kept !== undefined) {
    // Whole or not at all: another process may be reading it.
    const own = `${kept}.${process.pid}`;
    writeFileSync(own, code);
    renameSync(own, kept);
  }
  return code;
}
