import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Socket } from 'node:net';
import { TestClock } from '../support/test-clock.js';
import { Deadline } from '../../src/common/deadline.js';
import { loadEnv } from '../../src/config/env.js';
import { Connector, type Target } from '../../src/tasks/resume/webhook/connector.js';
import { NameResolver } from '../../src/tasks/resume/webhook/name-resolver.js';
import { isPublicAddress } from '../../src/tasks/resume/webhook/public-address.js';
import { WebhookCalls } from '../../src/tasks/resume/webhook/webhook-calls.js';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const REFUSED = { kind: 'not-delivered', reason: 'address_refused' };
const UNREACHABLE = { kind: 'not-delivered', reason: 'ECONNREFUSED' };

/** Opens nothing: notes where a connection would have gone, and fails as if nobody had listened there. */
class RecordingConnector extends Connector {
  readonly targets: Target[] = [];

  override connect(target: Target): Socket {
    this.targets.push(target);
    const socket = new Socket();
    const error = Object.assign(new Error('nobody listens'), { code: 'ECONNREFUSED' });
    setImmediate(() => socket.destroy(error));
    return socket;
  }
}

/** Answers each question with the next of its answers, the last again and again. */
class ScriptedResolver extends NameResolver {
  readonly asked: string[] = [];

  constructor(private readonly answers: readonly (readonly string[])[]) {
    super();
  }

  override async addressesOf(name: string): Promise<readonly string[]> {
    this.asked.push(name);
    return this.answers[Math.min(this.asked.length, this.answers.length) - 1] ?? [];
  }
}

function guarded(answers: readonly (readonly string[])[], env: Readonly<Record<string, string>> = {}) {
  const connector = new RecordingConnector();
  const resolver = new ScriptedResolver(answers);
  const port = new WebhookCalls(loadEnv(env), new TestClock(), resolver, connector);
  const call = (url: string) => port.call({ id: 't', url, secret: SECRET, body: '{}' }, Deadline.after(20_000));
  return { call, resolver, addresses: () => connector.targets.map(({ address }) => address), connector };
}

const PRIVATE = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.0',
  '10.255.255.255',
  '100.64.0.0',
  '100.100.100.200',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.255',
  '169.254.169.254',
  '169.254.170.2',
  '172.16.0.0',
  '172.31.255.255',
  '192.0.0.192',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.0.0',
  '192.168.255.255',
  '198.18.0.0',
  '198.19.255.255',
  '198.51.100.1',
  '203.0.113.255',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.0',
  '255.255.255.255',
  '::',
  '::1',
  '::7f00:1',
  '::ffff:0:127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
  '64:ff9b:1::a00:1',
  '100::1',
  '2001::1',
  '2001:10::1',
  '2001:20::1',
  '2001:1ff:ffff::',
  '2001:db8::1',
  '2002:7f00:1::',
  '2002:808:808::',
  '3fff::1',
  '4000::',
  '5f00::1',
  'fc00::',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%eth0',
  '2a00:1450:4001:80b::200e%eth0',
  'fec0::1',
  'ff02::1',
  'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
];

const PUBLIC = [
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2000::',
  '2001:200::',
  '2001:db7:ffff::',
  '2001:db9::',
  '2003::',
  '2606:4700:4700::1111',
  '3ffe:ffff::',
];

describe('which addresses are public', () => {
  it.each(PRIVATE)('WEBHOOK-GUARD: %s is not', (address) => expect(isPublicAddress(address)).toBe(false));
  it.each(PUBLIC)('WEBHOOK-GUARD: %s is', (address) => expect(isPublicAddress(address)).toBe(true));

  it.each(['', 'localhost', '127.1', '0x7f.1', '2130706433', '[::1]', '1.1.1.1 ', '1.1.1.1:80'])(
    'WEBHOOK-GUARD: %j is no address at all',
    (text) => expect(isPublicAddress(text)).toBe(false),
  );

  /** The ranges again, as numbers: [first, bits of the prefix]. */
  const SPECIAL: readonly (readonly [number, number])[] = [
    [0x00000000, 8],
    [0x0a000000, 8],
    [0x64400000, 10],
    [0x7f000000, 8],
    [0xa9fe0000, 16],
    [0xac100000, 12],
    [0xc0000000, 24],
    [0xc0000200, 24],
    [0xc0586300, 24],
    [0xc0a80000, 16],
    [0xc6120000, 15],
    [0xc6336400, 24],
    [0xcb007100, 24],
    [0xe0000000, 3],
  ];
  const isSpecial = (value: number) =>
    SPECIAL.some(([first, bits]) => value >= first && value < first + 2 ** (32 - bits));
  const dotted = (value: number) => [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
  const word = (value: number) => value.toString(16);
  const anyIPv4 = fc.oneof(
    fc.nat({ max: 0xffffffff }),
    // At both sides of both ends of each range.
    fc.constantFrom(...SPECIAL).chain(([first, bits]) => {
      const end = first + 2 ** (32 - bits);
      return fc.constantFrom(first - 1, first, end - 1, end).filter((value) => value >= 0 && value <= 0xffffffff);
    }),
  );

  it('WEBHOOK-GUARD: any IPv4 address is public exactly when it is in none of the ranges', () => {
    fc.assert(
      fc.property(anyIPv4, (value) => {
        expect([dotted(value), isPublicAddress(dotted(value))]).toEqual([dotted(value), !isSpecial(value)]);
      }),
      { numRuns: 2_000 },
    );
  });

  it('WEBHOOK-GUARD: no IPv6 form that carries an IPv4 address is public, whatever it carries', () => {
    fc.assert(
      fc.property(anyIPv4, (value) => {
        const [high, low] = [word(Math.floor(value / 65_536)), word(value % 65_536)];
        for (const carrier of [
          `::ffff:${dotted(value)}`,
          `::ffff:${high}:${low}`,
          `::${high}:${low}`,
          `64:ff9b::${high}:${low}`,
          `2002:${high}:${low}::1`,
          `2001:0:1:2:3:4:${high}:${low}`,
        ]) {
          expect([carrier, isPublicAddress(carrier)]).toEqual([carrier, false]);
        }
      }),
    );
  });

  it('WEBHOOK-GUARD: no IPv6 address outside 2000::/3 is public', () => {
    const first = fc.nat({ max: 0xffff }).filter((value) => value < 0x2000 || value > 0x3fff);
    const rest = fc.array(fc.nat({ max: 0xffff }), { minLength: 7, maxLength: 7 });
    fc.assert(
      fc.property(first, rest, (head, tail) => {
        expect(isPublicAddress([head, ...tail].map(word).join(':'))).toBe(false);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('where a call connects to', () => {
  it.each([
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f000001',
    '0x7f.0.0.1',
    '017700000001',
    '0177.0.0.01',
    '127.0.0.1.',
    '0',
    '0.0.0.0',
    '１２７。0。0。1',
    '%31%32%37.0.0.1',
    '10.1.2.3',
    '0xa9fea9fe',
    '169.254.169.254',
    '[::]',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[fd00:ec2::254]',
    'localhost',
    'localhost.',
    'LocalHost',
    'x.localhost',
  ])('WEBHOOK-GUARD: a stored url to %s is refused before anything is resolved or connected', async (host) => {
    const { call, resolver, addresses } = guarded([['1.1.1.1']]);
    expect(await call(`https://${host}:8443/hook`)).toEqual({ kind: 'not-delivered', reason: 'url_refused' });
    expect([resolver.asked, addresses()]).toEqual([[], []]);
  });

  it.each(['http://agent.example/', 'https://a:b@agent.example/', 'ftp://agent.example/', 'not a url', ''])(
    'WEBHOOK-GUARD: a stored url %j, which cannot be set, is not called either',
    async (url) => {
      const { call, resolver, addresses } = guarded([['1.1.1.1']]);
      expect(await call(url)).toEqual({ kind: 'not-delivered', reason: 'url_refused' });
      expect([resolver.asked, addresses()]).toEqual([[], []]);
    },
  );

  it.each(PRIVATE)('WEBHOOK-GUARD: a name that has the address %s is not connected to', async (address) => {
    const { call, resolver, addresses } = guarded([[address]]);
    expect(await call('https://agent.example/hook')).toEqual(REFUSED);
    expect([resolver.asked, addresses()]).toEqual([['agent.example'], []]);
  });

  it('WEBHOOK-GUARD: a name with a public address and a private one is not connected to at either', async () => {
    for (const found of [
      ['1.1.1.1', '127.0.0.1'],
      ['127.0.0.1', '1.1.1.1'],
      ['1.1.1.1', '::1'],
      ['1.1.1.1', '1.0.0.1', '9.9.9.9', '8.8.8.8', '8.8.4.4', '10.0.0.1'],
    ]) {
      const { call, addresses } = guarded([found]);
      expect([found, await call('https://agent.example/hook'), addresses()]).toEqual([found, REFUSED, []]);
    }
  });

  it('WEBHOOK-GUARD: a resolver that gives another name instead of an address leads nowhere, whatever is allowed', async () => {
    for (const env of [{}, { WEBHOOK_ALLOW_PRIVATE: 'true' }]) {
      const { call, addresses } = guarded([['localhost']], env);
      expect([await call('https://agent.example/hook'), addresses()]).toEqual([REFUSED, []]);
    }
  });

  it('WEBHOOK-GUARD: the connection goes to exactly the address that was looked at, for the name in the url', async () => {
    const { call, connector } = guarded([['93.184.215.14']]);
    expect(await call('https://Agent.Example.:8443/hook')).toEqual(UNREACHABLE);
    expect(connector.targets).toEqual([{ address: '93.184.215.14', port: 8443, tlsName: 'agent.example' }]);
  });

  it('WEBHOOK-GUARD: a resolver that changes its answer afterwards gains nothing: it is asked once', async () => {
    const { call, resolver, addresses } = guarded([['93.184.215.14'], ['127.0.0.1']]);
    expect(await call('https://agent.example/hook')).toEqual(UNREACHABLE);
    expect([resolver.asked, addresses()]).toEqual([['agent.example'], ['93.184.215.14']]);
    // And for the next call it is asked anew, and looked at anew.
    expect(await call('https://agent.example/hook')).toEqual(REFUSED);
    expect(addresses()).toEqual(['93.184.215.14']);
  });

  it('a name with several addresses is tried at the first four of them in turn', async () => {
    const found = ['1.1.1.1', '1.0.0.1', '2606:4700:4700::1111', '9.9.9.9', '8.8.8.8'];
    const { call, addresses } = guarded([found]);
    expect(await call('https://agent.example/hook')).toEqual(UNREACHABLE);
    expect(addresses()).toEqual(found.slice(0, 4));
  });

  it('a name without addresses, and one that cannot be resolved, is not delivered', async () => {
    const { call, addresses } = guarded([[]]);
    expect(await call('https://agent.example/hook')).toEqual({ kind: 'not-delivered', reason: 'no_address' });
    expect(addresses()).toEqual([]);
  });

  it('an address in the url is not resolved, and its certificate must be for the address', async () => {
    const { call, connector, resolver } = guarded([['9.9.9.9']]);
    await call('https://1.1.1.1/hook');
    await call('https://[2606:4700:4700::1111]/hook');
    expect(resolver.asked).toEqual([]);
    expect(connector.targets).toEqual([
      { address: '1.1.1.1', port: 443, tlsName: '1.1.1.1' },
      { address: '2606:4700:4700::1111', port: 443, tlsName: '2606:4700:4700::1111' },
    ]);
  });

  it('CONFIG: where private targets are allowed all of them are connected to, over http too', async () => {
    for (const address of ['127.0.0.1', '10.0.0.1', '::1', '169.254.169.254']) {
      const { call, connector } = guarded([[address]], { WEBHOOK_ALLOW_PRIVATE: 'true' });
      expect(await call('http://agent.example/hook')).toEqual(UNREACHABLE);
      expect(connector.targets).toEqual([{ address, port: 80, tlsName: undefined }]);
    }
  });
});
