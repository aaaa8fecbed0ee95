import { access } from 'node:fs/promises';
import { SystemClock } from '../common/clock.js';
import type { Clock } from '../common/clock.js';
import { Deadline } from '../common/deadline.js';
import type { Env } from '../config/env.js';
import { Accounts } from '../identity/accounts.js';
import { AccessTokensRepository } from '../identity/persistence/access-tokens.repository.js';
import { UsersRepository } from '../identity/persistence/users.repository.js';
import { acquireInstanceLock } from '../persistence/acquire-instance-lock.js';
import type { DatabaseUrl } from '../persistence/database-url.js';
import { openDatabase } from '../persistence/open-database.js';
import type { Database } from '../persistence/open-database.js';
import { readSchemaState } from '../persistence/schema-state.js';
import type { Reader, UnitOfWork } from '../persistence/unit-of-work.js';
import { CommandFailedError } from './cli-error.js';
import { databaseUrlOf } from './database-url-of.js';

/** Patient enough for a busy server beside it, short enough for a person at a terminal. */
const BUDGET_MS = 15_000;

export interface DatabaseSession {
  readonly accounts: Accounts;
  readonly unitOfWork: UnitOfWork;
  readonly reader: Reader;
  readonly clock: Clock;
  readonly deadline: Deadline;
}

/**
 * Opens the configured database for one command, beside a running server or without one.
 *
 * An empty database is made usable when `createWhenMissing` (in one transaction, which a server that starts at the
 * same instant waits for). An older one is refused: migrating what holds data belongs to a start of the server.
 *
 * @param options.isServerStopped refuses to work beside a server, and keeps one from starting meanwhile
 */
export async function withDatabase<T>(
  env: Env,
  options: { createWhenMissing?: boolean; isServerStopped?: boolean },
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  const url = databaseUrlOf(env);
  const createWhenMissing = options.createWhenMissing === true;
  if (!createWhenMissing && (await isMissingFile(url))) throw missing(url);
  const lock = options.isServerStopped === true ? await acquireInstanceLock(url, ignoreLoss) : undefined;
  try {
    return await withOpenDatabase(url, createWhenMissing, work);
  } finally {
    await lock?.release();
  }
}

/** Even then nothing breaks: what a command does is one transaction, which looks again under the session's lock. */
function ignoreLoss(): void {}

async function withOpenDatabase<T>(
  url: DatabaseUrl,
  createWhenMissing: boolean,
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  const deadline = Deadline.after(BUDGET_MS, { message: 'the database is busy or out of reach; try again' });
  const database = await openReady(url, createWhenMissing, deadline);
  try {
    const { unitOfWork, reader } = database;
    const clock = new SystemClock();
    const accounts = new Accounts(unitOfWork, new UsersRepository(), new AccessTokensRepository(reader), clock);
    return await work({ accounts, unitOfWork, reader, clock, deadline });
  } finally {
    await database.close();
  }
}

async function openReady(url: DatabaseUrl, createWhenMissing: boolean, deadline: Deadline): Promise<Database> {
  const settings = { url, poolSize: 2, boundMs: BUDGET_MS };
  const database = await openDatabase({ ...settings, migrate: false });
  try {
    const state = await readSchemaState(database.reader, deadline);
    if (state === 'current') return database;
    if (state === 'older') throw unusable(url, 'was made by an older version; start the server once, it migrates');
    if (state === 'newer') throw unusable(url, 'was made by a newer version; use the commands of that one');
    if (!createWhenMissing) throw missing(url);
  } catch (error) {
    await database.close();
    throw error;
  }
  await database.close();
  return openDatabase(settings);
}

async function isMissingFile(url: DatabaseUrl): Promise<boolean> {
  if (url.engine !== 'sqlite') return false;
  try {
    await access(url.file);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

function missing(url: DatabaseUrl): CommandFailedError {
  return unusable(url, 'does not exist yet; user create makes it, and so does the first start of the server');
}

function unusable(url: DatabaseUrl, why: string): CommandFailedError {
  return new CommandFailedError(`the database ${url.display} ${why}`);
}
