import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { WorkingCopy } from '../sabotage/working-copy.js';

// npm run soak:broken
//
// Soaks a copy of the product in which no intent is ever cleared, and fails unless that is noticed.

const PATCH = {
  rule: 'SOAK',
  says: 'The intent of a claimed answer is not cleared when it has been handed over.',
  file: 'src/clarification/persistence/claimed-rows.ts',
  find: "change: { kind: 'settled' }",
  replace: "change: { kind: 'intent' }",
  spec: 'test/soak/run.ts',
} as const;
const SECONDS = '10';
const NOTICED = /still owes its hand-over|somebody was told that it is|turns with its answer/;

const copy = new WorkingCopy();
let output = '';
try {
  await copy.broken(PATCH, async () => {
    const child = spawn(
      process.execPath,
      ['--import', './test/support/run-typescript.js', 'test/soak/run.ts', '--seconds', SECONDS, '--no-minimum'],
      { cwd: copy.folder, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await once(child, 'close');
  });
} finally {
  copy.remove();
}
const noticed = NOTICED.exec(output)?.[0];
if (noticed === undefined) {
  process.stdout.write(`${output}\nNOT NOTICED: ${PATCH.says}\n`);
  process.exit(1);
}
process.stdout.write(`noticed ("${noticed}"): ${PATCH.says}\n`);
