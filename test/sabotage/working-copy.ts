import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Patch } from './patch.js';

export const ROOT = join(import.meta.dirname, '../..');

/** A copy of the repository's tracked files as they are now, where the product may be broken. */
export class WorkingCopy {
  readonly folder = mkdtempSync(join(tmpdir(), 'clarion-sabotage-'));

  constructor() {
    const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0');
    for (const path of tracked.filter((name) => name !== '')) {
      mkdirSync(dirname(join(this.folder, path)), { recursive: true });
      cpSync(join(ROOT, path), join(this.folder, path));
    }
    symlinkSync(join(ROOT, 'node_modules'), join(this.folder, 'node_modules'));
  }

  /** Runs `work` on the broken product, and mends it whatever comes of that. @throws when the patch does not fit */
  async broken<T>(patch: Patch, work: () => Promise<T>): Promise<T> {
    const path = join(this.folder, patch.file);
    const sound = readFileSync(path, 'utf8');
    writeFileSync(path, brokenText(patch, sound));
    try {
      return await work();
    } finally {
      writeFileSync(path, sound);
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** @throws when what the patch replaces does not stand there exactly once, or is replaced by itself */
export function brokenText(patch: Patch, sound: string): string {
  const parts = sound.split(patch.find);
  if (parts.length !== 2) {
    throw new Error(`stands ${parts.length - 1} times in ${patch.file}, not once: ${patch.find}`);
  }
  if (patch.find === patch.replace) throw new Error(`changes nothing in ${patch.file}: ${patch.find}`);
  return parts.join(patch.replace);
}
