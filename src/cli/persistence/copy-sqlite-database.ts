import { link, lstat, open, rename, rm } from 'node:fs/promises';
import sqlite3 from 'sqlite3';
import { CommandFailedError, UsageError } from '../cli-error.js';

/** How long the copy waits for a writer that holds the file (a checkpoint, another process's recovery). */
const BUSY_TIMEOUT_MS = 10_000;

/**
 * Copies one committed state of the database to a file that must not exist, beside whoever reads and writes it.
 *
 * The copy grows under a name of its own and gets `target` when it is whole and on the disk: an interrupted backup
 * never looks like a backup. Linking, unlike renaming, cannot replace a file that appeared meanwhile.
 *
 * @throws UsageError when `target` cannot be made, CommandFailedError when the database cannot be read
 */
export async function copySqliteDatabase(source: string, target: string): Promise<void> {
  const partial = `${target}.partial-${process.pid}`;
  await refuseExisting(target);
  await makeEmpty(partial, target);
  try {
    await vacuumInto(source, partial);
    await synchronise(partial);
    await publish(partial, target);
  } finally {
    await rm(partial, { force: true });
  }
}

async function refuseExisting(target: string): Promise<void> {
  try {
    await lstat(target);
  } catch {
    // Missing, or in a folder that is: making the file will tell.
    return;
  }
  throw new UsageError(`${target} already exists; name a new file`);
}

/** SQLite fills an empty file and keeps its mode, which is never wider, not even for an instant. */
async function makeEmpty(partial: string, target: string): Promise<void> {
  try {
    const handle = await open(partial, 'wx', 0o600);
    await handle.close();
  } catch (error) {
    throw new UsageError(`cannot write ${target} (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`);
  }
}

function vacuumInto(source: string, target: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) =>
      reject(new CommandFailedError(`cannot copy ${source}: ${error.message}`, { cause: error }));
    // Not read-only: closing the last connection to a database folds its log into the file. Never creates one.
    const database = new sqlite3.Database(source, sqlite3.OPEN_READWRITE, (openError) => {
      if (openError !== null) return fail(openError);
      database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`, (pragmaError) => {
        database.run('VACUUM INTO ?1', [target], (copyError: Error | null) => {
          database.close((closeError) => {
            const error = pragmaError ?? copyError ?? closeError;
            return error === null ? resolve() : fail(error);
          });
        });
      });
    });
  });
}

async function synchronise(file: string): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function publish(partial: string, target: string): Promise<void> {
  try {
    await link(partial, target);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (code === 'EEXIST') throw new UsageError(`${target} already exists; name a new file`);
    // File systems without links, such as FAT.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(code)) throw error;
    await rename(partial, target);
  }
}
