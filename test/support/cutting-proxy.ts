import { connect, createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';

/** A way to a PostgreSQL server that can be cut in the middle of an exchange. */
export interface CuttingProxy {
  /** The given address, through the proxy. */
  readonly url: string;
  /** From now on: passes a statement on and then cuts its connection before any reply comes back. */
  cutAfterSending(statement: string): void;
  /** Cuts every connection and refuses new ones, as a server that has gone does. */
  goDown(): void;
  comeUp(): void;
  close(): Promise<void>;
}

export async function cuttingProxy(url: string): Promise<CuttingProxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let fatal: string | undefined;
  let isDown = false;
  const cutAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    if (isDown) {
      client.destroy();
      return;
    }
    const upstream = connect(Number(target.port || 5432), target.hostname);
    let cut = false;
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        to.end();
      });
    }
    client.on('data', (chunk) => {
      upstream.write(chunk);
      if (fatal !== undefined && chunk.includes(fatal)) {
        cut = true;
        fatal = undefined;
      }
    });
    upstream.on('data', (chunk) => {
      // The reply shows that the server has done it; the client never hears.
      if (cut) client.destroy();
      else client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const through = new URL(url);
  through.hostname = '127.0.0.1';
  through.port = String((server.address() as AddressInfo).port);
  return {
    url: through.toString(),
    cutAfterSending: (statement) => (fatal = statement),
    goDown: () => {
      isDown = true;
      cutAll();
    },
    comeUp: () => void (isDown = false),
    close: async () => {
      cutAll();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
