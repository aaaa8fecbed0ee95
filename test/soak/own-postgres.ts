import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';

/** A PostgreSQL of this run's own, as the tests start it; it ends with this process at the latest. */
export async function startPostgres(): Promise<{ readonly url: string; stop(): void }> {
  const script = join(import.meta.dirname, '../support/test-run.js');
  const child = spawn(process.execPath, [script, 'clarion_soak'], { stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as { postgres: string } | { error: string };
    if ('error' in said) throw new Error(`no PostgreSQL: ${said.error}`);
    return { url: said.postgres, stop: () => child.stdin.end('done\n') };
  }
  throw new Error('no PostgreSQL: it ended without a word');
}
