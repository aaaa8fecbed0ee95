import { randomUUID } from 'node:crypto';
import { copyFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase } from '../../src/persistence/open-database.js';
import type { Templates } from './templates.js';

const folder = () => process.env['CLARION_TEST_FOLDER'] ?? '';

/** One migrated file for the whole run, which nobody has open; both workers may make it, the last one stays. */
async function migratedTemplate(): Promise<string> {
  const template = join(folder(), 'template.db');
  const exists = await stat(template).then(
    () => true,
    () => false,
  );
  if (!exists) {
    const own = join(folder(), `${randomUUID()}.db`);
    const database = await openDatabase({ url: parseDatabaseUrl(`sqlite:${own}`), poolSize: 1, boundMs: 10_000 });
    await database.close();
    await rename(own, template);
  }
  return template;
}

export const sqliteTemplates: Templates = {
  async copy(migrated) {
    const file = join(folder(), `${randomUUID()}.db`);
    if (migrated) await copyFile(await migratedTemplate(), file);
    return `sqlite:${file}`;
  },

  async remove(url) {
    const file = url.slice('sqlite:'.length);
    for (const suffix of ['', '-wal', '-shm', '.lock']) await rm(`${file}${suffix}`, { force: true });
  },
};
