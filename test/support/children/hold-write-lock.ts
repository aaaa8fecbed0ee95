// FILE: takes SQLite's write lock, says "locked", and lets go when told anything.
import sqlite3 from 'sqlite3';

const database = new sqlite3.Database(process.argv[2] ?? '');
database.serialize();
const failed = (error: Error | null) => {
  if (error !== null) throw error;
};
database.run('PRAGMA busy_timeout = 5000', failed);
database.run('BEGIN IMMEDIATE', (error) => {
  failed(error);
  process.stdout.write('locked\n');
});
process.stdin.once('data', () => {
  database.run('COMMIT', (error) => {
    failed(error);
    process.stdout.write('free\n');
    process.exit(0);
  });
});
