import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { VERSION } from '../../src/common/version.js';
import { command, commandProcess, emptyFolder, refusal } from './command-line.js';

const COMMANDS = [
  ['user', 'create'],
  ['token', 'create'],
  ['token', 'list'],
  ['token', 'revoke'],
  ['workspace', 'list'],
  ['workspace', 'assign'],
  ['backup'],
  ['recovery'],
  ['recovery', 'show'],
  ['recovery', 'discard'],
  ['question', 'list'],
  ['question', 'answer'],
];

describe('CLI: the command line', () => {
  it.each([[], ['user'], ['token'], ['workspace'], ['question'], ...COMMANDS].map((names) => [names]))(
    'helps with %j, without any setting',
    async (names) => {
      const { status, stdout, stderr } = await command([...names, '--help'], { DATABASE_URL: 'nonsense' });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toContain(['Usage: clarion', ...names].join(' '));
    },
  );

  it('names every command in the help of its group', async () => {
    for (const [group = '', name] of COMMANDS) {
      const { stdout } = await command(name === undefined ? ['--help'] : [group, '--help']);
      expect(stdout).toContain(name ?? group);
    }
  });

  it.each([
    [[], 'a command is missing; one of user, token, workspace, backup, recovery, question (--help tells more)'],
    [
      ['tokens'],
      'there is no command "tokens"; one of user, token, workspace, backup, recovery, question (--help tells more)',
    ],
    [['token'], 'a command is missing; one of create, list, revoke (--help tells more)'],
    [['token', 'make', 'x'], 'there is no command "make"; one of create, list, revoke (--help tells more)'],
    [['user', 'create'], "missing required argument 'name'"],
    [['user', 'create', 'ada', 'bob'], "too many arguments for 'create'. Expected 1 argument but got 2."],
    [['token', 'create'], "required option '--user <name>' not specified"],
    [['token', 'list', '--al'], "unknown option '--al'"],
    [
      ['token', 'create', '--user', 'ada', '--expires', '1 month'],
      '--expires must be whole minutes, hours or days, such as 90m, 12h or 30d, up to 36500d, not "1 month"',
    ],
    [['workspace', 'assign', 'w1'], 'say who: --owner NAME, or --no-owner'],
    [['question', 'answer', 'p1'], 'say what to answer: --select, --text or --reject'],
    [
      ['question', 'list', '--url', 'ftp://x'],
      '--url (or CLARION_URL) must look like http://127.0.0.1:3000, without credentials or query',
    ],
  ])('refuses %j in one line', async (args, sentence) => {
    expect(await command(args)).toEqual(refusal(2, sentence));
  });

  it('names a setting that cannot be used', async () => {
    expect(await command(['token', 'list'], { PORT: 'many' })).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/^error: PORT must be .*\n$/),
    });
    const outcome = await command(['token', 'list'], { DATABASE_URL: 'mysql://ada:secret@host/name' });
    expect(outcome).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/^error: DATABASE_URL must be .*\n$/),
    });
    expect(outcome.stderr).not.toContain('secret');
    expect(await command(['token', 'list'], { DATABASE_URL: 'postgres://ada:secret@host' })).toEqual(
      refusal(2, 'DATABASE_URL must name a database, e.g. postgres://user:password@host:5432/name'),
    );
  });

  it('tells its version', async () => {
    expect(await command(['--version'])).toEqual({ status: 0, stdout: `${VERSION}\n`, stderr: '' });
  });

  it('says in one line, without the password, that a database is out of reach', async () => {
    const outcome = await command(['token', 'list'], { DATABASE_URL: 'postgres://ada:secret@127.0.0.1:1/name' });
    expect(outcome).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^error: cannot open the database postgres:\/\/127\.0\.0\.1:1\/name: .*\n$/),
    });
    expect(outcome.stderr).not.toContain('secret');
  });

  it('makes nothing where there is no database, but for the first user, and that for its owner alone (FILE-MODE)', async () => {
    const folder = emptyFolder();
    expect(await commandProcess(['token', 'list'], {}, folder)).toEqual(
      refusal(
        1,
        'the database sqlite:./data/clarion.db does not exist yet; user create makes it, and so does the first start of the server',
      ),
    );
    expect(readdirSync(folder)).toEqual([]);
    expect((await commandProcess(['user', 'create', 'ada'], {}, folder)).status).toBe(0);
    expect(statSync(join(folder, 'data')).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(join(folder, 'data'))) {
      expect([name, statSync(join(folder, 'data', name)).mode & 0o777]).toEqual([name, 0o600]);
    }
  });

  it('reads .env', async () => {
    const folder = emptyFolder();
    writeFileSync(join(folder, '.env'), 'DATABASE_URL=sqlite:./elsewhere.db\n');
    expect((await commandProcess(['user', 'create', 'ada'], {}, folder)).status).toBe(0);
    expect(readdirSync(folder).sort()).toEqual(['.env', 'elsewhere.db']);
  });

  it('exits with what it found, as a process', async () => {
    expect(await commandProcess(['--help'])).toMatchObject({ status: 0, stderr: '' });
    expect(await commandProcess(['user'])).toEqual(
      refusal(2, 'a command is missing; one of create (--help tells more)'),
    );
  });
});
