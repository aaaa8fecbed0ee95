import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** What is not for the public internet, from the registries of special-purpose addresses (IANA). */
const SPECIAL_IPV4: readonly (readonly [network: string, prefix: number])[] = [
  ['0.0.0.0', 8], // this network; 0.0.0.0 reaches the machine itself
  ['10.0.0.0', 8],
  ['100.64.0.0', 10], // behind a provider's NAT, and metadata of some clouds
  ['127.0.0.0', 8],
  ['169.254.0.0', 16], // link-local, and metadata of most clouds
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24], // relays into 6to4
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, and broadcast
];

/** Of the only block given out so far; whatever lies outside it is refused without being listed. */
const GLOBAL_IPV6 = ['2000::', 3] as const;

const SPECIAL_IPV6: readonly (readonly [network: string, prefix: number])[] = [
  ['2001::', 23], // protocols: Teredo, benchmarking, ORCHID
  ['2001:db8::', 32],
  ['2002::', 16], // 6to4 carries any IPv4 address
  ['3fff::', 20],
];

// Two lists for two families: one with both would match an IPv4 address against the IPv6 networks as if it were mapped.
const specialIPv4 = new BlockList();
for (const [network, prefix] of SPECIAL_IPV4) specialIPv4.addSubnet(network, prefix, 'ipv4');
const globalIPv6 = new BlockList();
globalIPv6.addSubnet(...GLOBAL_IPV6, 'ipv6');
const specialIPv6 = new BlockList();
for (const [network, prefix] of SPECIAL_IPV6) specialIPv6.addSubnet(network, prefix, 'ipv6');

/**
 * Whether a connection to the address leaves for the public internet. An address in another form than the resolver's
 * (`127.1`, a zone, brackets) is not one. IPv6 forms that carry an IPv4 address (mapped, NAT64, 6to4, Teredo) are
 * refused whatever they carry.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !specialIPv4.check(address, 'ipv4');
  if (!isIPv6(address) || address.includes('%')) return false;
  return globalIPv6.check(address, 'ipv6') && !specialIPv6.check(address, 'ipv6');
}
