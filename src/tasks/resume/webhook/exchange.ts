import { request } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { CallResult } from '../resume.port.js';
import { failureCode } from './failure-code.js';

export interface Post {
  /** Path and query. */
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

/** What of a reply is read after its status, so that a peer which writes a few words sees a clean end. */
const REPLY_BYTES = 16_384;
const REPLY_MS = 250;

/**
 * One request on a connection of its own, which is gone afterwards. Never rejects.
 *
 * The last byte of the body is held back until the kernel has taken everything before it. Up to then the agent cannot
 * have the whole request, nor check its signature, whatever becomes of the connection: not delivered. From the moment
 * just before that byte is written it may have it, unless the write itself fails: unknown. Only a status line tells
 * more. (The request's `finish` event would come too late as the border: bytes may be on their way before it.)
 *
 * @param stop its reason is the code when it ends the exchange
 */
export function exchange(socket: Socket, post: Post, stop: AbortSignal): Promise<CallResult> {
  return new Promise((resolve) => {
    let mayHaveArrived = false;
    let lastByteTaken = false;
    let verdict: CallResult | undefined;
    let replyTimer: NodeJS.Timeout | undefined;

    const end = (result: CallResult) => {
      clearTimeout(replyTimer);
      stop.removeEventListener('abort', stopped);
      outgoing.destroy();
      socket.destroy();
      resolve(result);
    };
    const fail = (reason: string, arrival = mayHaveArrived) =>
      end(verdict ?? { kind: arrival ? 'unknown' : 'not-delivered', reason });
    const stopped = () => fail(failureCode(stop.reason));

    const outgoing = request({
      createConnection: () => socket,
      method: 'POST',
      path: post.path,
      headers: { ...post.headers, 'content-length': post.body.length, connection: 'close' },
    });
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      const lastByteRefused = error.syscall === 'write' && !lastByteTaken;
      fail(failureCode(error), mayHaveArrived && !lastByteRefused);
    });
    outgoing.on('close', () => fail('closed'));
    outgoing.on('finish', () => {
      lastByteTaken = true;
    });
    outgoing.on('response', (reply) => {
      verdict = verdictOf(reply);
      replyTimer = setTimeout(() => fail('status'), REPLY_MS);
      let read = 0;
      reply.on('data', (chunk: Buffer) => {
        read += chunk.length;
        if (read > REPLY_BYTES) fail('status');
      });
      reply.on('error', () => fail('status'));
      reply.on('close', () => fail('status'));
    });
    outgoing.on('upgrade', (reply) => end(verdictOf(reply)));

    if (stop.aborted) return stopped();
    stop.addEventListener('abort', stopped, { once: true });
    const writeLastByte = () => {
      mayHaveArrived = true;
      outgoing.end(post.body.subarray(-1));
    };
    const before = post.body.subarray(0, -1);
    if (before.length === 0) return writeLastByte();
    outgoing.write(before, (error) => {
      if (error) fail(failureCode(error));
      else if (!outgoing.destroyed) writeLastByte();
    });
  });
}

function verdictOf({ statusCode = 0 }: IncomingMessage): CallResult {
  if (statusCode >= 200 && statusCode < 300) return { kind: 'accepted' };
  return { kind: 'not-delivered', reason: `status ${statusCode}` };
}
