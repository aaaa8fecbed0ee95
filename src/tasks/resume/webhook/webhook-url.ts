import { isIP } from 'node:net';
import { isPublicAddress } from './public-address.js';

/** Code points of the longest URL that is taken. */
export const MAX_WEBHOOK_URL = 2048;

export type WebhookUrl = { readonly url: URL } | { readonly problem: string };

/**
 * A URL that may be called, as far as its text tells; where its name leads is looked at when it is called. `problem`
 * completes "resume.url …" and repeats nothing of the URL.
 */
export function readWebhookUrl(text: string, { allowPrivate }: { readonly allowPrivate: boolean }): WebhookUrl {
  // The parser would drop white space and control characters, and call something else than what was written.
  if (/[\s\p{Cc}]/u.test(text)) return { problem: 'must not contain white space or control characters' };
  if (!URL.canParse(text)) return { problem: 'must be an absolute URL' };
  const url = new URL(text);
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:')) {
    return { problem: allowPrivate ? 'must be an https or http URL' : 'must be an https URL' };
  }
  if (url.username !== '' || url.password !== '') return { problem: 'must not contain a user name or password' };
  if (text.includes('#')) return { problem: 'must not have a fragment' };
  const host = hostOf(url);
  if (host === '') return { problem: 'must name a host' };
  if (allowPrivate) return { url };
  // Decimal, octal, hexadecimal and short forms have become dotted ones in the parser.
  if (isIP(host) === 0 ? isLocalName(host) : !isPublicAddress(host)) {
    return { problem: 'must not lead to a private, loopback or link-local address' };
  }
  return { url };
}

/** The host's name without the dot of the root, or its address without brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}

/** Names that mean the machine itself everywhere (RFC 6761). */
export function isLocalName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}
