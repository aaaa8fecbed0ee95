import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { copyFile, mkdir, rename, rm, stat, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * The folder of a build of the sources as they are now, laid out like `dist/` (`src/main.js`, `src/cli/main.js`,
 * `migrations/`), for tests that need a process of its own. Made once in a run, apart from `dist/`, which somebody may
 * be using.
 */
export async function builtProgram(): Promise<string> {
  const folder = process.env['CLARION_TEST_FOLDER'] ?? '';
  const program = join(folder, 'program');
  if (!(await exists(program))) {
    const own = join(folder, randomUUID());
    await mkdir(own);
    await copyFile('package.json', join(own, 'package.json'));
    await symlink(resolve('node_modules'), join(own, 'node_modules'));
    await run(process.execPath, ['node_modules/@swc/cli/bin/swc.js', 'src', 'migrations', '-d', join(own, 'dist')]);
    // Of two workers that built it at once one comes first; both builds are the same.
    await rename(own, program).catch(() => rm(own, { recursive: true }));
  }
  return join(program, 'dist');
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
