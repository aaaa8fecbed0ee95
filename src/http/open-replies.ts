import type { Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

const NONE: ReadonlySet<ServerResponse> = new Set();

/** Which replies are still to be written, or written to the end, on each connection. */
export class OpenReplies {
  private readonly open = new WeakMap<Duplex, Set<ServerResponse>>();
  private readonly latest = new WeakMap<Duplex, ServerResponse>();

  constructor(server: Server) {
    server.on('request', ({ socket }, response) => {
      const replies = this.repliesOn(socket);
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

  private repliesOn(socket: Duplex): Set<ServerResponse> {
    const known = this.open.get(socket);
    if (known !== undefined) return known;
    const replies = new Set<ServerResponse>();
    this.open.set(socket, replies);
    socket.once('close', () => {
      for (const reply of replies) if (reply.socket === null) closeUnbegun(reply);
    });
    return replies;
  }
}

/**
 * A reply whose turn on its connection has not come has no socket yet, and Node forgets it with the connection: its `close`
 * would never come, and whatever its request holds would be held for ever. So it gets a connection that is closed.
 */
function closeUnbegun(reply: ServerResponse): void {
  const closed = new Socket();
  closed.destroy();
  reply.assignSocket(closed);
}
