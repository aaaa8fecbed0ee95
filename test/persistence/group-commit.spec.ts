import { afterEach, expect, it } from '@jest/globals';
import { CallerGoneError, Deadline } from '../../src/common/deadline.js';
import { ConflictError, TemporarilyUnavailableError } from '../../src/common/domain-error.js';
import { DatabaseError } from '../../src/persistence/db-error.js';
import { SqliteConnection } from '../../src/persistence/sqlite/sqlite-connection.js';
import { openSqliteWriter } from '../../src/persistence/sqlite/sqlite-data-sources.js';
import { GROUP_LIMITS, SqliteUnitOfWork, type GroupLimits } from '../../src/persistence/sqlite/sqlite-unit-of-work.js';
import { CommitOutcomeUnknownError, type Tx } from '../../src/persistence/unit-of-work.js';
import { endChildren, startChild } from '../support/child.js';
import { describeEngine } from '../support/engines.js';
import { until } from '../support/until.js';

const soon = () => Deadline.after(60_000);
const NOW = '2026-01-31T09:00:00.123Z';
// Runs for minutes unless it is stopped.
const ENDLESS =
  'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT max(i) FROM n';
const ENDLESS_CHANGE = `UPDATE workspaces SET name = (${ENDLESS.replace('max(i)', "max(i) || ''")})`;
// Times that no group meets, so that only what a test says can end one.
const PATIENT: GroupLimits = { size: 16, joinMs: 20_000, limitMs: 20_000 };

const insert = (tx: Tx, id: string) =>
  tx.query('INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, $1, $2, $2)', [id, NOW]);
/** Writes the next number, which it finds by what it sees. */
const append = async (tx: Tx): Promise<number> => {
  const { rows } = await tx.query<{ n: number }>('SELECT count(*) AS n FROM workspaces');
  const n = rows[0]?.n ?? -1;
  await insert(tx, String(n));
  return n;
};

afterEach(endChildren);

describeEngine('sqlite', 'GROUP-COMMIT: works that wait share a COMMIT', (engine) => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  /** A unit of work whose commands are written down; `failures` are what the next COMMITs answer. */
  async function opened(limits: GroupLimits = PATIENT, failures: DatabaseError[] = []) {
    const url = await engine.createUrl();
    const dataSource = await openSqliteWriter(url.slice('sqlite:'.length), 50);
    const commands: string[] = [];
    let beforeCommit: () => void = () => undefined;
    class Watched extends SqliteConnection {
      override async command(sql: string): Promise<DatabaseError | undefined> {
        commands.push(sql);
        if (sql !== 'COMMIT') return super.command(sql);
        beforeCommit();
        return failures.shift() ?? super.command(sql);
      }
    }
    const connection = new Watched(dataSource);
    const unitOfWork = new SqliteUnitOfWork(connection, undefined, limits);
    closing.push(async () => {
      await unitOfWork.close();
      await connection.close();
      await dataSource.destroy();
    });
    const ids = async () =>
      (
        await unitOfWork.run('test', soon(), (tx) => tx.query<{ id: string }>('SELECT id FROM workspaces ORDER BY id'))
      ).rows.map((row) => row.id);
    return { unitOfWork, commands, ids, onCommit: (act: () => void) => (beforeCommit = act) };
  }

  const failure = (code: string, kind: DatabaseError['kind']) => new DatabaseError(code, code, kind, 'other');

  it('GROUP-COMMIT: one BEGIN and one COMMIT for the one that runs and those behind it, in their order', async () => {
    const { unitOfWork, commands, ids } = await opened();
    const runs = ['a', 'b', 'c'].map((id) =>
      unitOfWork.run(id, soon(), async (tx) => {
        await insert(tx, id);
        return (await tx.query('SELECT id FROM workspaces')).rows.length;
      }),
    );
    expect(await Promise.all(runs)).toEqual([1, 2, 3]);
    const member = ['SAVEPOINT member', 'RELEASE member'];
    expect(commands).toEqual(['BEGIN IMMEDIATE', ...member, ...member, 'COMMIT']);
    expect(await ids()).toEqual(['a', 'b', 'c']);
  });

  it('one alone has a transaction of its own, without a savepoint', async () => {
    const { unitOfWork, commands } = await opened();
    await unitOfWork.run('a', soon(), (tx) => insert(tx, 'a'));
    await unitOfWork.run('b', soon(), (tx) => insert(tx, 'b'));
    expect(commands).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'BEGIN IMMEDIATE', 'COMMIT']);
  });

  it('GROUP-COMMIT: nobody hears anything before the COMMIT, not even who was refused by what it makes true', async () => {
    const { unitOfWork, onCommit } = await opened();
    const heard: string[] = [];
    let heardBefore: readonly string[] | undefined;
    onCommit(() => (heardBefore ??= [...heard]));
    const note = (name: string) => () => void heard.push(name);
    await Promise.all([
      unitOfWork.run('first', soon(), (tx) => insert(tx, 'a')).then(note('first')),
      unitOfWork.run('second', soon(), (tx) => insert(tx, 'b')).then(note('second')),
      unitOfWork
        .run('refused', soon(), async (tx) => {
          if ((await tx.query("SELECT id FROM workspaces WHERE id = 'a'")).rows.length > 0)
            throw new ConflictError('a');
        })
        .catch(note('refused')),
    ]);
    expect(heardBefore).toEqual([]);
    expect(heard).toEqual(['first', 'second', 'refused']);
  });

  it('GROUP-COMMIT: one that fails is undone alone', async () => {
    const { unitOfWork, commands, ids } = await opened();
    const refusal = new ConflictError('no');
    const runs = await Promise.allSettled([
      unitOfWork.run('a', soon(), (tx) => insert(tx, 'a')),
      unitOfWork.run('b', soon(), async (tx) => {
        await insert(tx, 'b');
        throw refusal;
      }),
      unitOfWork.run('c', soon(), async (tx) => {
        await insert(tx, 'c');
        await insert(tx, 'a');
      }),
      unitOfWork.run('d', soon(), (tx) => insert(tx, 'd')),
    ]);
    expect(runs.map((run) => run.status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
    expect(runs[1]).toMatchObject({ reason: refusal });
    expect(runs[2]).toMatchObject({ reason: { violation: 'unique' } });
    expect(commands.filter((sql) => sql === 'COMMIT')).toHaveLength(1);
    expect(await ids()).toEqual(['a', 'd']);
  });

  it('a leader that fails takes nobody along', async () => {
    const { unitOfWork, commands, ids } = await opened();
    const runs = await Promise.allSettled([
      unitOfWork.run('a', soon(), async (tx) => {
        await insert(tx, 'a');
        throw new ConflictError('no');
      }),
      unitOfWork.run('b', soon(), (tx) => insert(tx, 'b')),
    ]);
    expect(runs.map((run) => run.status)).toEqual(['rejected', 'fulfilled']);
    expect(commands).toEqual(['BEGIN IMMEDIATE', 'ROLLBACK', 'BEGIN IMMEDIATE', 'COMMIT']);
    expect(await ids()).toEqual(['b']);
  });

  it.each([
    ['read, which leaves the others in their transaction', ENDLESS],
    ['change, with which SQLite undoes all of it', ENDLESS_CHANGE],
  ])('GROUP-COMMIT, BUDGET: a deadline stops its own %s, and the others commit', async (_, endless) => {
    const { unitOfWork, ids } = await opened();
    const runs = await Promise.allSettled([
      unitOfWork.run('a', soon(), append),
      unitOfWork.run('late', Deadline.after(200), async (tx) => {
        await append(tx);
        await tx.query(endless);
      }),
      unitOfWork.run('b', soon(), append),
    ]);
    expect(runs).toMatchObject([
      { status: 'fulfilled', value: 0 },
      { status: 'rejected', reason: { code: 'temporarily_unavailable' } },
      { status: 'fulfilled', value: 1 },
    ]);
    expect(await ids()).toEqual(['0', '1']);
  });

  it('GROUP-COMMIT, BUDGET: one that takes too long for the others runs alone, behind them', async () => {
    const { unitOfWork, ids } = await opened({ ...GROUP_LIMITS, joinMs: 5_000, limitMs: 50 });
    const settled: string[] = [];
    const note = (name: string) => () => void settled.push(name);
    await Promise.all([
      unitOfWork.run('a', soon(), append).then(note('a')),
      unitOfWork
        .run('slow', Deadline.after(1_000), async (tx) => {
          await append(tx);
          await tx.query(ENDLESS_CHANGE);
        })
        .catch(note('slow')),
    ]);
    expect(settled).toEqual(['a', 'slow']);
    expect(await ids()).toEqual(['0']);
  });

  it('nobody joins one that would be late if all had to run again', async () => {
    const { unitOfWork, commands } = await opened({ ...PATIENT, limitMs: 20_000 });
    await Promise.all([
      unitOfWork.run('a', Deadline.after(30_000), append),
      unitOfWork.run('b', soon(), append),
      unitOfWork.run('c', soon(), append),
    ]);
    const group = ['SAVEPOINT member', 'RELEASE member'];
    expect(commands).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'BEGIN IMMEDIATE', ...group, 'COMMIT']);
  });

  it('GROUP-COMMIT, CALLER-GONE: whose caller goes after its part is undone, and the others run again', async () => {
    const { unitOfWork, ids } = await opened();
    const caller = new AbortController();
    const runs = await Promise.allSettled([
      unitOfWork.run('gone', Deadline.after(60_000, { callerGone: caller.signal }), append),
      unitOfWork.run('b', soon(), async (tx) => {
        caller.abort();
        return append(tx);
      }),
    ]);
    expect(runs[0]).toMatchObject({ status: 'rejected', reason: expect.any(CallerGoneError) });
    expect(runs[1]).toMatchObject({ status: 'fulfilled', value: 0 });
    expect(await ids()).toEqual(['0']);
  });

  it.each(['SQLITE_FULL', 'SQLITE_BUSY'])(
    'GROUP-COMMIT: after a COMMIT that was refused by %s each runs again, alone',
    async (code) => {
      const refused = failure(code, code === 'SQLITE_BUSY' ? 'rolled-back' : 'unavailable');
      const { unitOfWork, commands, ids } = await opened(PATIENT, [refused]);
      let runs = 0;
      const counted = (tx: Tx) => {
        runs += 1;
        return append(tx);
      };
      expect(await Promise.all([1, 2, 3].map(() => unitOfWork.run('test', soon(), counted)))).toEqual([0, 1, 2]);
      expect(runs).toBe(6);
      expect(commands.filter((sql) => sql === 'COMMIT')).toHaveLength(4);
      expect(await ids()).toEqual(['0', '1', '2']);
    },
  );

  it('GROUP-COMMIT, R4a: a COMMIT of unknown outcome is unknown to all whose part it was, and to nobody else', async () => {
    const { unitOfWork } = await opened(PATIENT, [failure('SQLITE_IOERR', 'unavailable')]);
    const runs = await Promise.allSettled([
      unitOfWork.run('a', soon(), (tx) => insert(tx, 'a')),
      unitOfWork.run('refused', soon(), async (tx) => {
        if ((await tx.query('SELECT id FROM workspaces')).rows.length > 0) throw new ConflictError('taken');
        return 'it was not there after all';
      }),
      unitOfWork.run('b', soon(), (tx) => insert(tx, 'b')),
    ]);
    expect(runs).toMatchObject([
      { reason: expect.any(CommitOutcomeUnknownError) },
      { value: 'it was not there after all' },
      { reason: expect.any(CommitOutcomeUnknownError) },
    ]);
  });

  it('no COMMIT carries more than the largest group', async () => {
    const { unitOfWork, commands } = await opened({ ...PATIENT, size: 4 });
    await Promise.all(Array.from({ length: 10 }, () => unitOfWork.run('test', soon(), append)));
    const sizes = commands
      .join(' ')
      .split('COMMIT')
      .slice(0, -1)
      .map((transaction) => 1 + transaction.split('SAVEPOINT').length - 1);
    expect(sizes).toEqual([4, 4, 2]);
  });

  it('closing waits for a group and for all that wait behind it', async () => {
    const { unitOfWork } = await opened({ ...PATIENT, size: 2 });
    const runs = Array.from({ length: 5 }, () => unitOfWork.run('test', soon(), append));
    await unitOfWork.close();
    await expect(unitOfWork.run('test', soon(), append)).rejects.toThrow(TemporarilyUnavailableError);
    expect(await Promise.all(runs)).toEqual([0, 1, 2, 3, 4]);
  });

  it('GROUP-COMMIT, DURABLE: after kill -9 every acknowledged write of every group is there', async () => {
    const url = await engine.createUrl();
    const child = startChild('write-until-killed.ts', [url]);
    const acknowledged: string[] = [];
    const listening = (async () => {
      for (;;) acknowledged.push(await child.nextLine());
    })().catch(() => undefined);
    await until(() => acknowledged.length >= 100);
    await child.kill('SIGKILL');
    await listening;
    const dataSource = await openSqliteWriter(url.slice('sqlite:'.length), 50);
    const rows: { id: string }[] = await dataSource.query('SELECT id FROM workspaces');
    await dataSource.destroy();
    const present = new Set(rows.map((row) => row.id));
    expect(acknowledged.filter((id) => !present.has(id))).toEqual([]);
  });
});
