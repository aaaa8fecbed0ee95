import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { DomainErrorCode } from '../common/domain-error.js';
import { HTTP_STATUS } from './problem.js';

/**
 * What Node cannot make a request of never reaches the pipeline; it is answered in the shape of every other error.
 * Nothing of it is logged or repeated.
 */
export function answerUnreadableRequests(server: Server): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const [code, sentence] = told(error.code);
    const body = JSON.stringify({ error: sentence, code });
    socket.end(
      `HTTP/1.1 ${HTTP_STATUS[code]} Refused\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  });
}

function told(code: string | undefined): [DomainErrorCode, string] {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return ['payload_too_large', 'the path and headers of the request are too large'];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return ['validation_failed', 'the request did not arrive in time'];
    default:
      return ['validation_failed', 'this is not an HTTP request'];
  }
}
