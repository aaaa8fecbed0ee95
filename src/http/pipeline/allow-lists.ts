import { isIPv6 } from 'node:net';
import { ForbiddenError, ValidationError } from '../../common/domain-error.js';
import { isLoopbackHost } from '../../config/loopback.js';
import type { PipelineRequest } from '../pipeline-request.js';
import type { Step } from './step.js';

/**
 * A web page must not reach this server through its visitor's browser: not under a name of its own that it points at
 * our address (DNS rebinding: Host), nor with a request across origins (Origin). In both authentication modes.
 */
export function checkHostAndOrigin(options: {
  host: string;
  allowedHosts: readonly string[];
  corsOrigins: readonly string[];
}): Step {
  const own = isIPv6(options.host) ? `[${options.host}]` : options.host.toLowerCase();
  const names = new Set([own, ...options.allowedHosts]);
  return (request) => {
    const host = hostOf(request).toLowerCase();
    const name = host.replace(/:\d+$/, '');
    if (!isLoopbackHost(name) && !names.has(name) && !names.has(host)) {
      throw new ForbiddenError('this Host is not allowed; the operator can add it to ALLOWED_HOSTS');
    }
    const { origin } = request.headers;
    if (origin !== undefined && !options.corsOrigins.includes(origin) && !isSameHost(origin, host)) {
      throw new ForbiddenError('this Origin is not allowed; the operator can add it to CORS_ORIGINS');
    }
  };
}

/**
 * The host that the request was sent to. In front of a request target that names one itself (`GET http://host/path`) the
 * header does not count.
 * @throws ValidationError for two headers: whoever else looks at the request may have believed the other one
 */
function hostOf({ originalUrl, headers, rawHeaders }: PipelineRequest): string {
  const given = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  if (given.length > 1) throw new ValidationError('Host', 'must be given once');
  if (originalUrl.startsWith('/')) return headers.host ?? '';
  return /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(originalUrl)?.[1] ?? headers.host ?? '';
}

/** The scheme may differ: behind a TLS proxy the page is https and we are not. */
function isSameHost(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  const ours = `${page.protocol}//${host}`;
  return /^https?:$/.test(page.protocol) && URL.canParse(ours) && new URL(ours).host === page.host;
}
