import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import sqlite3 from 'sqlite3';

const ROOT = join(import.meta.dirname, '../..');

/** Where a run was made, and with what. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly system: string;
  readonly node: string;
  readonly sqlite: string;
  readonly drivers: Readonly<Record<string, string>>;
  /** Absent outside a checkout; with a `+` when files differ from it. */
  readonly commit?: string;
}

export function describeMachine(): Machine {
  const commit = commitOf();
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    sqlite: sqlite3.VERSION,
    drivers: Object.fromEntries(['sqlite3', 'pg', 'typeorm', 'express'].map((name) => [name, versionOf(name)])),
    ...(commit !== undefined && { commit }),
  };
}

function versionOf(name: string): string {
  const file = join(ROOT, 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

function commitOf(): string | undefined {
  try {
    const git = (...args: string[]): string =>
      execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    return `${git('rev-parse', '--short=12', 'HEAD')}${git('status', '--porcelain') === '' ? '' : '+'}`;
  } catch {
    return undefined;
  }
}
