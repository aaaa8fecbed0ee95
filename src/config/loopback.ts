import { isIPv4 } from 'node:net';

/** Whether a server bound to this host is reachable from this machine only. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase();
  return name === 'localhost' || name === '::1' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'));
}
