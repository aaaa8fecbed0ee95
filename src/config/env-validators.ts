import { isIP } from 'node:net';
import { makeValidator } from 'envalid';

/** The value as it may stand in a one-line message. Never used for a variable that can hold a secret. */
const shown = (value: string): string => JSON.stringify(value.slice(0, 60));

export const wholeNumber = (min: number, max: number) =>
  makeValidator<number>((text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
    if (value >= min && value <= max) return value;
    throw new Error(`must be a whole number from ${min} to ${max} (is ${shown(text)})`);
  });

export const flag = makeValidator<boolean>((text) => {
  if (/^(true|1|yes|on)$/i.test(text)) return true;
  if (/^(false|0|no|off)$/i.test(text)) return false;
  throw new Error(`must be true or false (is ${shown(text)})`);
});

export const choice = <T extends string>(...values: readonly T[]) =>
  makeValidator<T>((text) => {
    const value = values.find((candidate) => candidate === text);
    if (value !== undefined) return value;
    throw new Error(`must be one of ${values.join(', ')} (is ${shown(text)})`);
  });

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/i;

export const host = makeValidator<string>((text) => {
  const bare = text.replace(/^\[(.*)\]$/, '$1');
  if (isIP(bare) !== 0 || HOST_NAME.test(text)) return bare;
  throw new Error(`must be a host name or an IP address (is ${shown(text)})`);
});

/** Its value is never shown: it may hold a password. */
export const databaseUrl = makeValidator<string>((text) => {
  if (/^sqlite:[^?#\0]+$/.test(text) && !/^sqlite:(\/\/)?(:memory:)?$/.test(text)) return text;
  if (/^postgres(ql)?:\/\//.test(text) && URL.canParse(text)) return text;
  throw new Error('must be sqlite:PATH (a file) or postgres://USER:PASSWORD@HOST:PORT/DATABASE');
});

/** `scheme://host[:port]` each, without a path. */
export const originList = makeValidator<readonly string[]>((text) =>
  entries(text).map((entry) => {
    if (URL.canParse(entry) && /^https?:\/\/[^/]+$/i.test(entry)) return new URL(entry).origin;
    throw new Error(`must be a comma-separated list of origins such as https://inbox.example.org (is ${shown(text)})`);
  }),
);

/** `name` or `name:port` each. */
export const hostList = makeValidator<readonly string[]>((text) =>
  entries(text).map((entry) => {
    const [, name = '', port] = /^(\[[0-9a-f:.]+\]|[^:]+)(?::(\d{1,5}))?$/i.exec(entry) ?? [];
    const usable = name.startsWith('[') ? isIP(name.slice(1, -1)) === 6 : HOST_NAME.test(name);
    if (usable && (port === undefined || Number(port) <= 65_535)) return entry.toLowerCase();
    throw new Error(`must be a comma-separated list of host names, each with an optional port (is ${shown(text)})`);
  }),
);

const PROXY_GROUPS = ['loopback', 'linklocal', 'uniquelocal'];

/** Express' `trust proxy`, without `true`: trusting every hop lets anybody choose their address. */
export const trustProxy = makeValidator<false | number | readonly string[]>((text) => {
  if (text === 'false' || text === '0') return false;
  if (/^[1-9]$/.test(text)) return Number(text);
  const proxies = entries(text);
  if (proxies.length > 0 && proxies.every((entry) => PROXY_GROUPS.includes(entry) || isSubnet(entry))) return proxies;
  throw new Error(
    `must be false, a number of proxies from 1 to 9, or a list of addresses and subnets (is ${shown(text)})`,
  );
});

function isSubnet(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

function entries(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}
