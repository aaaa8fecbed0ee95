import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

// Agents that wait, each on a connection of its own, which stays open until this process ends. Arguments: a port, and a
// file with a JSON list of {path, token}. Prints "asked" when all requests have been written, and each status that comes
// back, one a line.

const [, , port, file] = process.argv;
const waits = JSON.parse(readFileSync(file ?? '', 'utf8')) as readonly { path: string; token: string }[];
/** Connections being made at one time: fewer than a server lets queue. */
const AT_ONCE = 50;

function begin({ path, token }: { path: string; token: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`, () =>
        resolve(),
      );
    });
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      const status = /^HTTP\/1\.1 (\d+)/.exec(chunk.toString())?.[1];
      if (status !== undefined) process.stdout.write(`${status}\n`);
    });
  });
}

for (let from = 0; from < waits.length; from += AT_ONCE)
  await Promise.all(waits.slice(from, from + AT_ONCE).map(begin));
process.stdout.write('asked\n');
process.stdin.on('end', () => process.exit(0)).resume();
