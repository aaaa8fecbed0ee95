import { isIP } from 'node:net';
import type { Request } from 'express';

/**
 * The network that a request comes from, as it is counted: an IPv4 address, or the /64 of an IPv6 one, which is what a
 * single customer commonly has to choose addresses from. Behind trusted proxies (TRUST_PROXY) it is the one that they
 * tell; where that is no address, the proxy's own, so that nobody gets a budget by an invented name.
 */
export function clientNetwork({ ip, socket }: Pick<Request, 'ip' | 'socket'>): string {
  return networkOf(ip) ?? networkOf(socket.remoteAddress) ?? 'unknown';
}

/** Some proxies append the port: it would make each connection a network of its own. */
const WITH_PORT = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/;

function networkOf(text = ''): string | undefined {
  const [, six, four] = WITH_PORT.exec(text) ?? [];
  const address = (six ?? four ?? text).replace(/%.*$/, '');
  switch (isIP(address)) {
    case 4:
      return address;
    case 6:
      return networkOfSix(groupsOf(address));
    default:
      return undefined;
  }
}

function networkOfSix(groups: readonly number[]): string {
  const [high = 0, low = 0] = groups.slice(6);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** The eight groups of a well-formed IPv6 address. */
function groupsOf(address: string): number[] {
  const [head = [], tail = []] = address.split('::').map(readGroups);
  const zeros = new Array<number>(8 - head.length - tail.length).fill(0);
  return [...head, ...zeros, ...tail];
}

function readGroups(text: string): number[] {
  return text.split(':').flatMap((group) => {
    if (group === '') return [];
    if (!group.includes('.')) return [parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}
