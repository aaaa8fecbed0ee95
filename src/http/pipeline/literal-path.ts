import type { Step } from './step.js';

/**
 * Turns each path segment that cannot be decoded (`%ZZ`, `%FF`) into the literal text that was sent, so that such an id
 * is one that no row has and takes the path of a missing one (A3). The router would answer it with a 400 of its own.
 */
export const literalPath: Step = (request) => {
  const end = request.url.search(/[?#]/);
  const path = end < 0 ? request.url : request.url.slice(0, end);
  if (!path.includes('%')) return;
  const literal = path
    .split('/')
    .map((segment) => (isDecodable(segment) ? segment : segment.replaceAll('%', '%25')))
    .join('/');
  if (literal !== path) request.url = literal + (end < 0 ? '' : request.url.slice(end));
};

function isDecodable(segment: string): boolean {
  try {
    decodeURIComponent(segment);
    return true;
  } catch {
    return false;
  }
}
