import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

export interface Call {
  readonly id: string;
  readonly body: string;
}

/** An agent that is called instead of waiting: it replies to no call but those that it is told to accept. */
export class WebhookAgent {
  readonly calls: Call[] = [];
  accepts = false;
  /** What it checks signatures with. */
  secret = '';

  private constructor(private readonly server: Server) {
    server.on('request', (request, reply) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString();
        // Throws for a signature that is not ours, and the demo ends.
        new Webhook(this.secret).verify(body, request.headers as Record<string, string>);
        this.calls.push({ id: String(request.headers['webhook-id']), body });
        if (this.accepts) reply.writeHead(204).end();
      });
    });
  }

  static async start(): Promise<WebhookAgent> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new WebhookAgent(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}
