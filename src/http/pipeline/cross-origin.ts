import type { RequestHandler } from 'express';

const PREFLIGHT_SECONDS = 600;

/**
 * Lets the pages of the configured origins read our answers, errors included. Their preflights are answered here,
 * before authentication, because a browser sends them without the token. No credentials: we have no cookies.
 */
export function crossOrigin(origins: readonly string[]): RequestHandler {
  return (request, response, next) => {
    if (origins.length > 0) response.vary('Origin');
    const origin = request.headers.origin;
    if (origin === undefined || !origins.includes(origin)) return next();
    response.setHeader('Access-Control-Allow-Origin', origin);
    response.setHeader('Access-Control-Expose-Headers', 'X-Request-Id, Retry-After, Mcp-Session-Id, WWW-Authenticate');
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return next();
    response.setHeader('Access-Control-Allow-Methods', 'GET, POST, PATCH, DELETE');
    response.setHeader(
      'Access-Control-Allow-Headers',
      'Authorization, Content-Type, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version',
    );
    response.setHeader('Access-Control-Max-Age', String(PREFLIGHT_SECONDS));
    response.status(204).end();
  };
}
