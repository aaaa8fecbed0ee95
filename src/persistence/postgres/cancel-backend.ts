import { connect } from 'node:net';
import type { Client } from 'pg';

const CANCEL_REQUEST = 80877102;
const GIVE_UP_MS = 2000;

/**
 * Asks the server to stop what this connection is running, over a socket of its own, so that it works when the pool
 * is exhausted. Resolves when the server has passed the request on (it then closes the socket), or when it cannot be
 * reached; it never rejects. The caller keeps the connection to itself until then, or a late request would stop
 * somebody else's statement.
 */
export function cancelBackend(client: Client): Promise<void> {
  // Sent by the server at connection; pg keeps them but does not declare them.
  const { processID, secretKey } = client as Client & { processID?: number | null; secretKey?: number | null };
  if (typeof processID !== 'number' || typeof secretKey !== 'number') return Promise.resolve();
  const request = Buffer.alloc(16);
  request.writeInt32BE(16, 0);
  request.writeInt32BE(CANCEL_REQUEST, 4);
  request.writeInt32BE(processID, 8);
  request.writeInt32BE(secretKey, 12);
  return new Promise((resolve) => {
    const socket = client.host.startsWith('/')
      ? connect(`${client.host}/.s.PGSQL.${client.port}`)
      : connect(client.port, client.host);
    socket.setTimeout(GIVE_UP_MS, () => socket.destroy());
    socket.on('connect', () => socket.write(request));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => resolve());
    socket.resume();
  });
}
