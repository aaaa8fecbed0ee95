import { loadEnv } from '../config/env.js';
import type { ServerAddress } from './rest-client.js';

const EVERY_ADDRESS: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** `CLARION_URL`, else where a server with this environment listens; `CLARION_TOKEN`. */
export function serverAddress(environment: NodeJS.ProcessEnv): ServerAddress {
  return {
    url: environment['CLARION_URL'] || ownUrl(environment),
    token: environment['CLARION_TOKEN'] || undefined,
  };
}

function ownUrl(environment: NodeJS.ProcessEnv): string {
  const { host, port } = loadEnv(environment);
  const reachable = EVERY_ADDRESS[host] ?? host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
