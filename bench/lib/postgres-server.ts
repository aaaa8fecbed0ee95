import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { BenchError } from './bench-error.js';
import { onPostgres } from './seeded-databases.js';

export interface PostgresServer {
  readonly url: string;
  /** What decides how durable a commit is, and the version. */
  readonly settings: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

const SETTINGS = [
  'server_version',
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'wal_sync_method',
  'shared_buffers',
];

/**
 * A server with durable writes on a data directory in `kept`; it ends with this process at the latest.
 * @param runFolder for its log and socket
 */
export async function startPostgres(kept: string, runFolder: string): Promise<PostgresServer> {
  const folder = join(runFolder, 'postgres');
  const home = join(kept, 'postgres');
  await mkdir(folder, { recursive: true });
  await mkdir(home, { recursive: true });
  const script = join(import.meta.dirname, '../children/postgres.js');
  // In a process group of its own: Ctrl-C must not reach it before those that are connected to it have ended.
  const child = spawn(process.execPath, [script, home, folder], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
  const gone = once(child, 'exit');
  const stop = async (): Promise<void> => {
    child.stdin.end();
    await gone;
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as { postgres: string } | { error: string };
    if ('error' in said) throw new BenchError(`no PostgreSQL: ${said.error}`);
    const rows = await onPostgres(
      said.postgres,
      `SELECT name, current_setting(name) AS setting FROM pg_settings
       WHERE name IN (${SETTINGS.map((name) => `'${name}'`).join(', ')}) ORDER BY name`,
    );
    const settings = Object.fromEntries(rows.map(({ name, setting }) => [name ?? '', setting ?? '']));
    return { url: said.postgres, settings, stop };
  }
  throw new BenchError('no PostgreSQL: it ended without a word');
}
