import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase } from '../../src/persistence/open-database.js';
import { startApp } from '../support/app.js';
import { RestCaller } from '../support/callers.js';
import { describeEngine } from '../support/engines.js';
import { answersTo } from '../support/estate.js';
import { Scenario, soon, type Asked } from '../support/scenario.js';
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

  it('BACKUP: gives back what it held: a server starts on it, recovers as after a crash, and keeps what was answered', async () => {
    const scenario = new Scenario(await engine.createDatabase());
    const answered = await scenario.asked();
    await scenario.answer(answered);
    const open = await scenario.asked();
    // What a hand-over that is under way has in the rows.
    const owed = await scenario.asked();
    await scenario.plant(owed, 'q1', {
      status: 'answered',
      response: { question_id: 'q1', selected_options: ['left'], custom_text: '' },
      response_delivery_pending: true,
    });
    const { url } = scenario.database;
    const file = join(emptyFolder(), 'backup.db');
    expect((await command(['backup', file], { DATABASE_URL: url })).status).toBe(0);
    for (const later of [open, owed]) await scenario.services.tasks.delete(UNSCOPED, later.taskId, soon());

    const restored = await startApp({ url: `sqlite:${file}` });
    try {
      const rest = new RestCaller(restored.url);
      expect((await rest.get('/health/ready')).status).toBe(200);
      const of = async ({ pendingId }: Asked) => (await rest.get(`/clarification/${pendingId}`)).json;
      expect(await of(answered)).toMatchObject({ status: 'answered', delivered: true });
      expect(await of(open)).toMatchObject({ status: 'pending', active: true });
      expect(await of(owed)).toMatchObject({ status: 'pending', active: true });
      const retried = await rest.post(`/clarification/${owed.pendingId}/respond`, answersTo(['q1']));
      expect(retried.json).toMatchObject({ claimed: true, delivered: true });
    } finally {
      await restored.close();
    }
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
