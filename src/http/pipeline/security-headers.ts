import type { RequestHandler } from 'express';
import helmet from 'helmet';

/**
 * For pages of our own only: everything from this server, no framing. TLS is the business of a proxy in front, so
 * neither HSTS nor upgrade-insecure-requests (which breaks a plain server that is not on localhost).
 */
export function securityHeaders(): RequestHandler[] {
  return [
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
    (_request, response, next) => {
      // Tokens and answers: nothing of this belongs in a cache. Static files set their own.
      response.setHeader('Cache-Control', 'no-store');
      next();
    },
  ];
}
