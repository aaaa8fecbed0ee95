import { loadEnv, readEnvironment } from '../config/env.js';
import { runCommandLine } from './program.js';
import { serverAddress } from './server-address.js';

// Whatever a command writes is the operator's alone.
process.umask(0o077);
// A reader that has seen enough (`… | head`) is no failure.
process.stdout.on('error', () => undefined);

process.exitCode = await runCommandLine(
  process.argv.slice(2),
  {
    env: () => loadEnv(readEnvironment()),
    server: () => serverAddress(readEnvironment()),
    print: (text) => process.stdout.write(`${text}\n`),
  },
  (line) => process.stderr.write(`${line}\n`),
);
