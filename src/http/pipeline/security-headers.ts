import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { RequestHandler } from 'express';
import helmet from 'helmet';

/**
 * For pages of our own only: everything from this server, no framing. TLS is the business of a proxy in front, so
 * neither HSTS nor upgrade-insecure-requests (which breaks a plain server that is not on localhost).
 */
export function securityHeaders(): RequestHandler {
  const headers = headersOf(
    helmet({
      contentSecurityPolicy: {
        useDefaults: false,
        directives: {
          defaultSrc: ["'self'"],
          baseUri: ["'none'"],
          connectSrc: ["'self'"],
          fontSrc: ["'self'"],
          formAction: ["'self'"],
          frameAncestors: ["'none'"],
          imgSrc: ["'self'", 'data:'],
          objectSrc: ["'none'"],
          scriptSrc: ["'self'"],
          // Swagger UI sets styles inline.
          styleSrc: ["'self'", "'unsafe-inline'"],
        },
      },
      strictTransportSecurity: false,
      xFrameOptions: { action: 'deny' },
    }),
  );
  // Tokens and answers: nothing of this belongs in a cache. Static files set their own.
  headers.push(['Cache-Control', 'no-store']);
  return (_request, response, next) => {
    for (const [name, value] of headers) response.setHeader(name, value);
    next();
  };
}

/** What the middleware sets, the same on every response: composed once and not for every request. */
function headersOf(middleware: ReturnType<typeof helmet>): [name: string, value: string][] {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  middleware(response.req, response, (error?: unknown) => {
    if (error !== undefined) throw new Error('the security headers cannot be composed', { cause: error });
  });
  return Object.entries(response.getHeaders()).map(([name, value]) => [name, String(value)]);
}
