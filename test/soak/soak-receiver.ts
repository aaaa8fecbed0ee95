import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';

/** What became of one call, as far as the receiver can tell. `unknown`: it has the call, the caller no reply. */
export interface SoakCall {
  readonly id: string;
  readonly body: string;
  readonly fault: WebhookFault | undefined;
}

export const WEBHOOK_FAULTS = ['status 500', 'hang', 'reset', 'late'] as const;
export type WebhookFault = (typeof WEBHOOK_FAULTS)[number];

/** Agents' webhook on loopback, which keeps what it gets, checks the signature and fails as it is told. */
export class SoakReceiver {
  readonly calls: SoakCall[] = [];
  readonly problems: string[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;

  /** @param faultOf what to do with the next call; undefined accepts it */
  constructor(
    private readonly secret: string,
    private readonly faultOf: () => WebhookFault | undefined,
  ) {
    this.server = createServer((request, reply) => void this.receive(request, reply));
    this.server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async receive(request: IncomingMessage, reply: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return; // The caller was killed.
    }
    const body = Buffer.concat(chunks).toString();
    const id = String(request.headers['webhook-id']);
    try {
      new Webhook(this.secret).verify(body, request.headers as Record<string, string>);
    } catch {
      this.problems.push(`the call ${id} is not signed`);
    }
    const fault = this.faultOf();
    this.calls.push({ id, body, fault });
    switch (fault) {
      case undefined:
        return void reply.writeHead(204).end();
      case 'late':
        await pause(200);
        return void reply.writeHead(200).end();
      case 'status 500':
        return void reply.writeHead(500).end();
      case 'reset':
        return void request.socket.resetAndDestroy();
      case 'hang':
        return;
    }
  }
}
