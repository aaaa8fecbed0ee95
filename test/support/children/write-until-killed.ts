import { openDatabase } from '../../../src/persistence/open-database.js';
import { parseDatabaseUrl } from '../../../src/persistence/database-url.js';
import { Deadline } from '../../../src/common/deadline.js';

/** Writes row after row, twenty callers at once, and prints the id of each that was acknowledged, until it is killed. */
const [url = ''] = process.argv.slice(2);
const database = await openDatabase({ url: parseDatabaseUrl(url), poolSize: 4, boundMs: 10_000 });
let number = 0;

async function writeOn(): Promise<void> {
  for (;;) {
    const id = String((number += 1));
    await database.unitOfWork.run('test', Deadline.after(60_000), (tx) =>
      tx.query('INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, $1, $2, $2)', [
        id,
        '2026-01-31T09:00:00.123Z',
      ]),
    );
    process.stdout.write(`${id}\n`);
  }
}

await Promise.all(Array.from({ length: 20 }, writeOn));
