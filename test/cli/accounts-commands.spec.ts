import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { expect, it } from '@jest/globals';
import { SystemClock } from '../../src/common/clock.js';
import { Deadline } from '../../src/common/deadline.js';
import { UnauthorizedError } from '../../src/common/domain-error.js';
import { Authenticator } from '../../src/identity/authenticator.js';
import { AccessTokensRepository } from '../../src/identity/persistence/access-tokens.repository.js';
import { TokenUse } from '../../src/identity/token-use.js';
import { hashToken } from '../../src/identity/tokens.js';
import { Log } from '../../src/observability/log.js';
import { describeEachEngine } from '../support/engines.js';
import type { TestDatabase } from '../support/engines.js';
import { command, commandProcess, refusal } from './command-line.js';

const TOKEN_LINE = /^clu_[A-Za-z0-9_-]{43}\n$/;
const ID_LINE = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$/;

/** As a server that has the database open. */
async function authenticate(database: TestDatabase, token: string) {
  const tokens = new AccessTokensRepository(database.reader);
  const clock = new SystemClock();
  const use = new TokenUse(database.unitOfWork, tokens, clock, new Log({ level: 'silent', format: 'json' }));
  try {
    return await new Authenticator('enforced', tokens, use, clock).authenticate(
      `Bearer ${token}`,
      Deadline.after(10_000),
    );
  } finally {
    await use.beforeApplicationShutdown();
  }
}

/** Every byte of the file and its log, or every row of every table. */
async function everythingStored(database: TestDatabase): Promise<string> {
  if (database.engine === 'sqlite') {
    const file = database.url.slice('sqlite:'.length);
    const names = (await readdir(dirname(file))).filter((name) => name.startsWith(basename(file)));
    return (await Promise.all(names.map((name) => readFile(join(dirname(file), name), 'latin1')))).join('\n');
  }
  const tables = await database.sql<{ name: string }>(
    `SELECT c.oid::regclass::text AS name FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`,
  );
  const rows = await Promise.all(
    tables.rows.map(({ name }) => database.sql<{ row: string }>(`SELECT row_to_json(t)::text AS row FROM ${name} t`)),
  );
  return rows.flatMap((result) => result.rows.map(({ row }) => row)).join('\n');
}

describeEachEngine('CLI: the commands for users, tokens and workspaces', (engine) => {
  it('makes the first user in an empty database, then a token that works, before any server has started', async () => {
    const environment = { DATABASE_URL: await engine.createUrl({ migrated: false }) };
    const user = await commandProcess(['user', 'create', 'ada'], environment);
    expect(user).toEqual({ status: 0, stdout: expect.stringMatching(ID_LINE), stderr: '' });
    const token = await commandProcess(['token', 'create', '--user', 'ada'], environment);
    expect(token).toEqual({ status: 0, stdout: expect.stringMatching(TOKEN_LINE), stderr: '' });
  });

  it('works beside a process that has the database open, which takes the token at once and refuses it once revoked', async () => {
    const database = await engine.createDatabase();
    const environment = { DATABASE_URL: database.url };
    await command(['user', 'create', 'ada'], environment);
    const token = (await commandProcess(['token', 'create', '--user', 'ada'], environment)).stdout.trim();
    const caller = await authenticate(database, token);
    expect(caller).toMatchObject({ kind: 'user', userName: 'ada' });
    const tokenId = caller.kind === 'user' ? caller.tokenId : '';
    expect(await commandProcess(['token', 'revoke', tokenId], environment)).toEqual({
      status: 0,
      stdout: expect.stringMatching(/^revoked \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\n$/),
      stderr: '',
    });
    await expect(authenticate(database, token)).rejects.toThrow(UnauthorizedError);
  });

  it('leaves nothing of a token in the database but its hash', async () => {
    const database = await engine.createDatabase();
    await command(['user', 'create', 'ada'], { DATABASE_URL: database.url });
    const { stdout } = await command(['token', 'create', '--user', 'ada'], { DATABASE_URL: database.url });
    const token = stdout.trim();
    const stored = await everythingStored(database);
    expect(stored).toContain(hashToken(token));
    expect(stored).not.toContain(token.slice('clu_'.length));
  });

  it('refuses what cannot be, in one line', async () => {
    const environment = { DATABASE_URL: await engine.createUrl() };
    await command(['user', 'create', 'ada'], environment);
    expect(await command(['user', 'create', 'ada'], environment)).toEqual(
      refusal(1, 'there is already a user named "ada"'),
    );
    expect(await command(['user', 'create', ' '], environment)).toEqual(
      refusal(2, 'name must not be empty, or begin or end with a space'),
    );
    expect(await command(['token', 'create', '--user', 'eve'], environment)).toEqual(
      refusal(1, 'there is no user named "eve"'),
    );
    expect(await command(['token', 'create', '--user', 'ada', '--name', 'x'.repeat(101)], environment)).toEqual(
      refusal(2, 'name must have at most 100 characters'),
    );
    expect(await command(['token', 'revoke', 'nothing'], environment)).toEqual(
      refusal(1, 'there is no token with the id "nothing"'),
    );
    expect(await command(['workspace', 'assign', 'nothing', '--owner', 'ada'], environment)).toEqual(
      refusal(1, 'there is no workspace with the id "nothing"'),
    );
    expect(await command(['workspace', 'assign', 'nothing', '--owner', 'eve'], environment)).toEqual(
      refusal(1, 'there is no user named "eve"'),
    );
  });

  it('lists tokens with what became of them', async () => {
    const database = await engine.createDatabase();
    const environment = { DATABASE_URL: database.url };
    expect((await command(['token', 'list'], environment)).stdout).toBe(
      'ID  USER  NAME  CREATED  LAST USED  EXPIRES  STATE\n',
    );
    await command(['user', 'create', 'ada'], environment);
    for (const name of ['forever', 'month', 'past', 'ended']) {
      await command(['token', 'create', '--user', 'ada', '--name', name, '--expires', '30d'], environment);
    }
    const set = (column: string, value: string | null, name: string) =>
      database.sql(`UPDATE access_tokens SET ${column} = $1 WHERE name = $2`, [value, name]);
    await set('expires_at', null, 'forever');
    await set('last_used_at', '2026-01-02T03:04:05.678Z', 'forever');
    await set('expires_at', '2026-01-01T00:00:00.000Z', 'past');
    await set('revoked_at', '2026-01-01T00:00:00.000Z', 'ended');
    const { rows } = await database.sql<Record<'id' | 'created_at' | 'expires_at', string>>(
      `SELECT id, created_at, expires_at FROM access_tokens ORDER BY created_at, id`,
    );
    const [forever, month, past, ended] = rows;
    expect(Date.parse(month?.expires_at ?? '') - Date.parse(month?.created_at ?? '')).toBe(30 * 86_400_000);
    const { stdout } = await command(['token', 'list'], environment);
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['ID', 'USER', 'NAME', 'CREATED', 'LAST USED', 'EXPIRES', 'STATE'],
      [forever?.id, 'ada', 'forever', forever?.created_at, '2026-01-02T03:04:05.678Z', 'never', 'active'],
      [month?.id, 'ada', 'month', month?.created_at, 'never', month?.expires_at, 'active'],
      [past?.id, 'ada', 'past', past?.created_at, 'never', '2026-01-01T00:00:00.000Z', 'expired'],
      [ended?.id, 'ada', 'ended', ended?.created_at, 'never', ended?.expires_at, 'revoked 2026-01-01T00:00:00.000Z'],
      [''],
    ]);
  });

  it('gives workspaces to users, and to nobody', async () => {
    const database = await engine.createDatabase();
    const environment = { DATABASE_URL: database.url };
    const userId = (await command(['user', 'create', 'ada'], environment)).stdout.trim();
    await database.sql(
      `INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ('w1', 'one', $1, $1), ('w2', 'two', $1, $1)`,
      ['2026-01-01T00:00:00.000Z'],
    );
    expect(await command(['workspace', 'assign', 'w1', '--owner', 'ada'], environment)).toEqual({
      status: 0,
      stdout: 'owned by ada now\n',
      stderr: '',
    });
    expect((await command(['workspace', 'list'], environment)).stdout).toBe(
      'ID  OWNER  NAME\nw1  ada    one\nw2  -      two\n',
    );
    const owners = await database.sql('SELECT id, owner_id FROM workspaces ORDER BY id');
    expect(owners.rows).toEqual([
      { id: 'w1', owner_id: userId },
      { id: 'w2', owner_id: '' },
    ]);
    expect((await command(['workspace', 'assign', 'w1', '--no-owner'], environment)).stdout).toBe(
      'owned by nobody now, so everybody sees it\n',
    );
    expect((await command(['workspace', 'list'], environment)).stdout).toContain('w1  -      one\n');
  });

  it('never migrates what holds data: an older, a newer and an empty database are left as they are', async () => {
    const database = await engine.createDatabase();
    const environment = { DATABASE_URL: database.url };
    const last = await database.sql<{ name: string }>('SELECT name FROM migrations ORDER BY id DESC LIMIT 1');
    await database.sql('DELETE FROM migrations WHERE name = $1', [last.rows[0]?.name ?? '']);
    for (const args of [
      ['user', 'create', 'ada'],
      ['token', 'list'],
    ]) {
      expect(await command(args, environment)).toEqual({
        status: 1,
        stdout: '',
        stderr: expect.stringMatching(
          /^error: the database \S+ was made by an older version; start the server once, it migrates\n$/,
        ),
      });
    }
    await database.sql(`INSERT INTO migrations (timestamp, name) VALUES (9999999999999, 'FromTheFuture9999999999999')`);
    expect((await command(['user', 'create', 'ada'], environment)).stderr).toMatch(/was made by a newer version/);
    expect((await database.sql('SELECT id FROM users')).rows).toEqual([]);

    const empty = await engine.createUrl({ migrated: false });
    for (const args of [
      ['token', 'list'],
      ['token', 'create', '--user', 'ada'],
      ['workspace', 'list'],
    ]) {
      expect(await command(args, { DATABASE_URL: empty })).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(
          / does not exist yet; user create makes it, and so does the first start of the server\n$/,
        ),
      });
    }
  });
});
