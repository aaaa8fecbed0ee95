import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadEnv } from '../../src/config/env.js';
import { ROOT } from '../architecture/source-files.js';

/** How long the server takes at most to stop with these settings, in seconds. */
export function longestStop(settings: NodeJS.ProcessEnv): number {
  const main = readFileSync(join(ROOT, 'src/main.ts'), 'utf8');
  const slack = /SHUTDOWN_SLACK_MS = ([\d_]+)/.exec(main)?.[1]?.replaceAll('_', '');
  return (loadEnv(settings).shutdownGraceMs + Number(slack)) / 1000;
}

/** `20s` as 20. */
export function seconds(text: unknown): number {
  return Number(/^(\d+)s$/.exec(String(text))?.[1]);
}
