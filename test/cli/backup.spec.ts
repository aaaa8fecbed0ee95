import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase } from '../../src/persistence/open-database.js';
import { describeEngine } from '../support/engines.js';
import { command, commandProcess, emptyFolder, refusal } from './command-line.js';

describeEngine('sqlite', 'CLI: backup', (engine) => {
  it('copies one committed state while the database is written to, to a file that only its owner reads (FILE-MODE)', async () => {
    const database = await engine.createDatabase();
    const folder = emptyFolder();
    const file = join(folder, 'backup.db');
    let pairs = 0;
    let isDone = false;
    // Users come in pairs, one transaction each: a state in between would show.
    const writing = (async () => {
      while (!isDone) {
        pairs += 1;
        await database.unitOfWork.run('test.pair', Deadline.after(10_000), async (tx) => {
          for (const half of ['a', 'b']) {
            await tx.query('INSERT INTO users (id, name, created_at) VALUES ($1, $1, $2)', [
              `${half}${pairs}`,
              '2026-01-01T00:00:00.000Z',
            ]);
          }
        });
      }
    })();
    const outcome = await commandProcess(['backup', file], { DATABASE_URL: database.url });
    isDone = true;
    await writing;
    expect(outcome).toEqual({ status: 0, stdout: `${file}\n`, stderr: '' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['backup.db']);

    const copy = await openDatabase({ url: parseDatabaseUrl(`sqlite:${file}`), poolSize: 2, boundMs: 10_000 });
    const { rows } = await copy.reader.query<{ id: string }>(Deadline.after(10_000), 'SELECT id FROM users');
    await copy.close();
    expect(rows.length).toBeGreaterThan(0);
    const halves = (half: string) =>
      rows
        .filter(({ id }) => id.startsWith(half))
        .map(({ id }) => id.slice(1))
        .sort();
    expect(halves('a')).toEqual(halves('b'));
  });

  it('never replaces a file, not even the database itself', async () => {
    const url = await engine.createUrl();
    const file = join(emptyFolder(), 'precious.txt');
    writeFileSync(file, 'precious');
    expect(await command(['backup', file], { DATABASE_URL: url })).toEqual(
      refusal(2, `${file} already exists; name a new file`),
    );
    expect(await readFile(file, 'utf8')).toBe('precious');
    const own = url.slice('sqlite:'.length);
    expect(await command(['backup', own], { DATABASE_URL: url })).toEqual(
      refusal(2, `${own} already exists; name a new file`),
    );
  });

  it('says in one line why it cannot, and leaves nothing behind', async () => {
    const folder = emptyFolder();
    const nowhere = join(folder, 'missing', 'backup.db');
    expect(await command(['backup', nowhere], { DATABASE_URL: await engine.createUrl() })).toEqual(
      refusal(2, `cannot write ${nowhere} (ENOENT)`),
    );
    const missing = join(folder, 'missing.db');
    expect(await command(['backup', join(folder, 'backup.db')], { DATABASE_URL: `sqlite:${missing}` })).toEqual(
      refusal(1, `cannot copy ${missing}: SQLITE_CANTOPEN: unable to open database file`),
    );
    const noDatabase = join(folder, 'no.db');
    writeFileSync(noDatabase, 'this is no database, however much of it there is. '.repeat(100));
    expect(await command(['backup', join(folder, 'backup.db')], { DATABASE_URL: `sqlite:${noDatabase}` })).toEqual(
      refusal(1, `cannot copy ${noDatabase}: SQLITE_NOTADB: file is not a database`),
    );
    expect(existsSync(missing)).toBe(false);
    expect(readdirSync(folder)).toEqual(['no.db']);
  });
});

describeEngine('postgres', 'CLI: backup', () => {
  it('points to pg_dump, without the password', async () => {
    const file = join(emptyFolder(), 'backup.dump');
    const outcome = await command(['backup', file], { DATABASE_URL: 'postgres://ada:secret@db.example.org/clarion' });
    expect(outcome).toEqual(
      refusal(
        2,
        `postgres://db.example.org/clarion is backed up with PostgreSQL's own pg_dump, e.g. pg_dump -Fc -f FILE "$DATABASE_URL"`,
      ),
    );
    expect(existsSync(file)).toBe(false);
  });
});
