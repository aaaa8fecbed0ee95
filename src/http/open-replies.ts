import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

const NONE: ReadonlySet<ServerResponse> = new Set();

/** Which replies are still to be written, or written to the end, on each connection. */
export class OpenReplies {
  private readonly open = new WeakMap<Duplex, Set<ServerResponse>>();
  private readonly latest = new WeakMap<Duplex, ServerResponse>();

  constructor(server: Server) {
    server.on('request', ({ socket }, response) => {
      const replies = this.open.get(socket) ?? new Set();
      if (replies.size === 0) this.open.set(socket, replies);
      replies.add(response);
      this.latest.set(socket, response);
      response.once('close', () => replies.delete(response));
    });
  }

  /** Whether the request that is still arriving has been answered already. */
  hasAnsweredEarly(socket: Duplex): boolean {
    const latest = this.latest.get(socket);
    return latest !== undefined && latest.writableEnded && !latest.req.complete;
  }

  /** More than one only where a client sends its next request before it has the last reply. */
  on(socket: Duplex): ReadonlySet<ServerResponse> {
    return this.open.get(socket) ?? NONE;
  }
}
