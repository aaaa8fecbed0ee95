import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A webhook on loopback that accepts every call, so that no answer fails for want of an agent. */
export class WebhookSink {
  private constructor(private readonly server: Server) {}

  static async start(): Promise<WebhookSink> {
    const server = createServer((request, reply) => {
      request.resume();
      request.once('end', () => reply.writeHead(204).end());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new WebhookSink(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
