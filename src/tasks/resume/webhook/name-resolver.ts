import { Injectable } from '@nestjs/common';
import { Resolver } from 'node:dns/promises';
import { isLocalName } from './webhook-url.js';

/** Which addresses a name has. */
export abstract class NameResolver {
  /** @throws with a `code` when there is none; as soon as `signal` is aborted */
  abstract addressesOf(name: string, signal: AbortSignal): Promise<readonly string[]>;
}

const TRY_MS = 2_000;
const TRIES = 3;

/**
 * Asks DNS itself and not the operating system: that would hold one of the few threads that SQLite's statements run
 * on for as long as a stranger's name server likes to take, and cannot be called off. So the hosts file is not read.
 */
@Injectable()
export class DnsResolver extends NameResolver {
  async addressesOf(name: string, signal: AbortSignal): Promise<readonly string[]> {
    if (isLocalName(name)) return ['127.0.0.1', '::1'];
    const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      const addresses = [v4, v6].flatMap((found) => (found.status === 'fulfilled' ? found.value : []));
      if (addresses.length === 0 && v4.status === 'rejected') throw v4.reason;
      return addresses;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}
