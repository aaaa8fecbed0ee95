// URL: becomes the one server of a database, says "locked" and stays; or says why not and exits 1.
import { parseDatabaseUrl } from '../../../src/persistence/database-url.js';
import { acquireInstanceLock } from '../../../src/persistence/acquire-instance-lock.js';

try {
  await acquireInstanceLock(parseDatabaseUrl(process.argv[2] ?? ''), (error) => {
    process.stdout.write(`lost: ${error.message}\n`);
    process.exit(2);
  });
  process.stdout.write('locked\n');
  process.stdin.resume();
} catch (error) {
  process.stdout.write(`${(error as Error).message}\n`);
  process.exit(1);
}
