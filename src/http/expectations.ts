import type { IncomingMessage, Server } from 'node:http';

/**
 * A client that asks before it sends its body (`Expect: 100-continue`) is told to go on when the body is wanted, and not
 * before its token has been looked at. Other expectations are let pass, as HTTP allows.
 */
export function deferContinue(server: Server): void {
  server.on('checkContinue', (request, response) => {
    // Whether a client that got its answer first sends the body all the same is unknown: nothing may come after it.
    response.setHeader('Connection', 'close');
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

export function expectsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' && /(^|\W)100-continue($|\W)/i.test(headers.expect ?? '');
}
