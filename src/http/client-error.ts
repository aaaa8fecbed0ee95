import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { DomainErrorCode } from '../common/domain-error.js';
import type { OpenReplies } from './open-replies.js';
import { HTTP_STATUS } from './problem.js';

interface Refusal {
  readonly status: number;
  readonly code: DomainErrorCode;
  readonly sentence: string;
}

/**
 * What Node cannot make a request of never reaches the pipeline; it is answered in the shape of every other error.
 * Nothing of it is logged or repeated. While a reply is still to come on the connection nothing is written, because it
 * would be taken for that reply, which may be that of an answer that counts: the peer sees the connection break.
 */
export function answerUnreadableRequests(server: Server, replies: OpenReplies): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable || isReplyAwaited(socket, replies)) {
      socket.destroy();
      return;
    }
    refuse(socket, refusalOf(error.code));
  });
  server.on('connect', (_request, socket: Duplex) => {
    socket.on('error', () => undefined);
    if (isReplyAwaited(socket, replies)) {
      socket.destroy();
      return;
    }
    // Node has let go of it: no time-out and no shutdown would ever end one whose peer leaves its half open.
    socket.once('finish', () => socket.destroy());
    refuse(socket, { status: 400, code: 'validation_failed', sentence: 'this is not a proxy' });
  });
}

/** The reply to a request that has not arrived whole has not begun, unless it is a refusal; that may have ended too. */
function isReplyAwaited(socket: Duplex, replies: OpenReplies): boolean {
  const open = [...replies.on(socket)];
  return (
    open.length > 1 || replies.hasAnsweredEarly(socket) || open.some((reply) => reply.headersSent || reply.req.complete)
  );
}

function refuse(socket: Duplex, { status, code, sentence }: Refusal): void {
  const body = JSON.stringify({ error: sentence, code });
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function refusalOf(error: string | undefined): Refusal {
  switch (error) {
    case 'HPE_HEADER_OVERFLOW':
      return refusal('payload_too_large', 'the path and headers of the request are too large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      // A status of its own, which tells clients and proxies that the same request may be sent again.
      return { status: 408, code: 'validation_failed', sentence: 'the request did not arrive in time' };
    default:
      return refusal('validation_failed', 'this is not an HTTP request');
  }
}

function refusal(code: DomainErrorCode, sentence: string): Refusal {
  return { status: HTTP_STATUS[code], code, sentence };
}
