import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createServer, type AddressInfo } from 'node:net';
import { SystemClock } from '../../src/common/clock.js';
import { Deadline } from '../../src/common/deadline.js';
import { loadEnv } from '../../src/config/env.js';
import type { AgentCall } from '../../src/tasks/resume/resume.port.js';
import { SocketConnector } from '../../src/tasks/resume/webhook/connector.js';
import { DnsResolver, NameResolver } from '../../src/tasks/resume/webhook/name-resolver.js';
import { WebhookCalls } from '../../src/tasks/resume/webhook/webhook-calls.js';
import { AGENT_CERTIFICATE } from '../support/agent-certificate.js';
import { until } from '../support/until.js';
import { WebhookReceiver, type Reaction } from '../support/webhook-receiver.js';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const BODY = JSON.stringify({ type: 'turn.prompted', prompt: 'Grüße, 你好 \u{1f600} "quoted"\n' });
/** Beyond what the buffers of two sockets hold. */
const HUGE_BODY = JSON.stringify({ prompt: 'x'.repeat(32_000_000) });

/** Far above what a request on loopback takes, also on a busy machine. */
const SHORT_MS = 4_000;

const ACCEPTED = { kind: 'accepted' };
const notDelivered = (reason: string) => ({ kind: 'not-delivered', reason });
const unknown = (reason: string) => ({ kind: 'unknown', reason });

describe('calling a webhook', () => {
  const env = loadEnv({ WEBHOOK_ALLOW_PRIVATE: 'true' });
  const port = new WebhookCalls(env, new SystemClock(), new DnsResolver(), new SocketConnector());
  let receiver: WebhookReceiver;
  let begunBefore: number;

  beforeAll(async () => {
    receiver = await WebhookReceiver.start();
  });
  beforeEach(() => {
    begunBefore = receiver.begun;
  });
  afterEach(async () => {
    receiver.forget();
    receiver.dropUnread();
    await until(() => receiver.connections === 0);
  });
  afterAll(() => receiver.close());

  const callOf = (changes: Partial<AgentCall> = {}): AgentCall => ({
    id: 'turn-1',
    url: receiver.url(),
    secret: SECRET,
    body: BODY,
    ...changes,
  });

  const callWith = (reaction: Reaction, changes: Partial<AgentCall> = {}, milliseconds = 20_000) => {
    receiver.react(reaction);
    return port.call(callOf(changes), Deadline.after(milliseconds));
  };

  it('WEBHOOK-SIGNED: posts exactly the bytes as JSON, signed for the library of receivers, under the turn’s id', async () => {
    const url = receiver.url('/hook/a?b=c%20d');
    expect(await callWith({ status: 200 }, { url })).toEqual(ACCEPTED);
    const [got] = receiver.received;
    expect(got).toMatchObject({ id: 'turn-1', method: 'POST', path: '/hook/a?b=c%20d', body: BODY });
    expect(got?.headers).toMatchObject({
      host: `127.0.0.1:${receiver.port}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(BODY)),
    });
    expect(() => got?.verified(SECRET)).not.toThrow();
    expect(got?.verified(SECRET)).toEqual(JSON.parse(BODY));
    expect(() => got?.verified(`whsec_${Buffer.alloc(32, 8).toString('base64')}`)).toThrow();
  });

  it.each<[string, Reaction]>([
    ['200', { status: 200 }],
    ['204', { status: 204 }],
    ['299', { status: 299, body: 'fine' }],
    ['200 with a body that never ends', 'slow-body'],
    ['200 with a body without end', { status: 200, body: 'x'.repeat(3_000_000) }],
    ['200 in pieces', 'pieces'],
    ['200 after 103', 'early-hints'],
  ])('WEBHOOK-RESULT: %s is accepted', async (_, reaction) => {
    expect(await callWith(reaction)).toEqual(ACCEPTED);
    expect(receiver.received).toHaveLength(1);
  });

  it.each([301, 302, 307, 308])(
    'WEBHOOK-RESULT: %i is not delivered, and the redirect not followed',
    async (status) => {
      expect(await callWith({ status, headers: { location: receiver.url('/elsewhere') } })).toEqual(
        notDelivered(`status ${status}`),
      );
      expect(receiver.received.map(({ path }) => path)).toEqual(['/hook']);
    },
  );

  it('WEBHOOK-RESULT: 200 before the body was read is accepted, and 101 is not', async () => {
    expect(await callWith('accept-unread', { body: HUGE_BODY })).toEqual(ACCEPTED);
    expect(await callWith('upgrade')).toEqual(notDelivered('status 101'));
  });

  it.each([304, 400, 401, 410, 413, 429, 500, 503])('WEBHOOK-RESULT: %i is not delivered', async (status) => {
    expect(await callWith({ status, ...(status === 304 ? {} : { body: 'a private word' }) })).toEqual(
      notDelivered(`status ${status}`),
    );
  });

  it.each<[string, Reaction, string]>([
    ['a reset', 'reset', 'ECONNRESET'],
    ['a close', 'close', 'ECONNRESET'],
    ['no HTTP', 'garbage', 'HPE_INVALID_CONSTANT'],
  ])('WEBHOOK-RESULT: %s after everything was sent is unknown', async (_, reaction, reason) => {
    expect(await callWith(reaction)).toEqual(unknown(reason));
    expect(receiver.received).toHaveLength(1);
  });

  it('WEBHOOK-RESULT: no status by the deadline, after everything was sent, is unknown', async () => {
    expect(await callWith('hang', {}, SHORT_MS)).toEqual(unknown('timeout'));
    expect(receiver.received).toHaveLength(1);
  });

  it('WEBHOOK-RESULT: a reset before the body was sent is not delivered', async () => {
    expect(await callWith('reset-before-body', { body: HUGE_BODY })).toMatchObject({ kind: 'not-delivered' });
    expect(receiver.received).toHaveLength(0);
  });

  it('WEBHOOK-RESULT: a deadline before the body was sent is not delivered', async () => {
    expect(await callWith('never-read', { body: HUGE_BODY }, SHORT_MS)).toEqual(notDelivered('timeout'));
    expect(receiver.received).toHaveLength(0);
  });

  it('WEBHOOK-RESULT: aborted before the body was sent is not delivered, after it unknown', async () => {
    const stop = new AbortController();
    receiver.react('never-read', 'hang');
    const first = port.call(callOf({ body: HUGE_BODY }), Deadline.after(20_000), stop.signal);
    await until(() => receiver.begun === begunBefore + 1);
    const second = port.call(callOf(), Deadline.after(20_000), stop.signal);
    await receiver.until(1);
    stop.abort();
    expect(await Promise.all([first, second])).toEqual([notDelivered('aborted'), unknown('aborted')]);
  });

  it('WEBHOOK-RESULT: aborted before it began, or with its time over, it connects to nothing', async () => {
    expect(await port.call(callOf(), Deadline.after(20_000), AbortSignal.abort())).toEqual(notDelivered('aborted'));
    expect(await port.call(callOf(), Deadline.after(0))).toEqual(notDelivered('timeout'));
    expect(receiver.begun).toBe(begunBefore);
  });

  it('WEBHOOK-RESULT: an abort once the status is known changes nothing', async () => {
    const stop = new AbortController();
    receiver.react('slow-body');
    const result = port.call(callOf(), Deadline.after(20_000), stop.signal);
    await receiver.until(1);
    // Its status is on the way: one that has not been read when the abort comes would be unknown.
    await new Promise((resolve) => setTimeout(resolve, 100));
    stop.abort();
    expect(await result).toEqual(ACCEPTED);
  });

  it('WEBHOOK-RESULT: where nobody listens it is not delivered', async () => {
    const gone = await WebhookReceiver.start();
    const url = gone.url();
    await gone.close();
    expect(await port.call(callOf({ url }), Deadline.after(20_000))).toEqual(notDelivered('ECONNREFUSED'));
  });

  it('WEBHOOK-RESULT: a name that is not resolved, or not in time, is not delivered', async () => {
    class Failing extends NameResolver {
      override addressesOf(name: string): Promise<readonly string[]> {
        if (name === 'hangs.example') return new Promise(() => undefined);
        return Promise.reject(Object.assign(new Error(`queryA ENOTFOUND ${name}`), { code: 'ENOTFOUND' }));
      }
    }
    const calls = new WebhookCalls(env, new SystemClock(), new Failing(), new SocketConnector());
    const call = (host: string) => calls.call(callOf({ url: receiver.url('/', host) }), Deadline.after(200));
    expect(await call('missing.example')).toEqual(notDelivered('ENOTFOUND'));
    expect(await call('hangs.example')).toEqual(notDelivered('timeout'));
    expect(receiver.begun).toBe(begunBefore);
  });

  it('WEBHOOK-RESULT: localhost is reached at whichever of its addresses takes the connection', async () => {
    receiver.react({ status: 204 });
    expect(await port.call(callOf({ url: receiver.url('/', 'localhost') }), Deadline.after(20_000))).toEqual(ACCEPTED);
    expect(receiver.received[0]?.headers.host).toBe(`localhost:${receiver.port}`);
  });

  it('WEBHOOK-RESULT: with a stored secret that cannot be used nothing is sent', async () => {
    for (const secret of ['', 'whsec_', 'whsec_*']) {
      expect(await port.call(callOf({ secret }), Deadline.after(20_000))).toEqual(notDelivered('secret_unusable'));
    }
    expect(receiver.begun).toBe(begunBefore);
  });

  it('WEBHOOK-RESULT: refused a few times and then accepted, each call has the same id and the same bytes', async () => {
    receiver.react({ status: 500 }, { status: 503 });
    const results = [];
    for (let count = 0; count < 3; count += 1) results.push(await port.call(callOf(), Deadline.after(20_000)));
    expect(results).toEqual([notDelivered('status 500'), notDelivered('status 503'), ACCEPTED]);
    expect(receiver.received.map(({ id, body }) => [id, body])).toEqual(Array(3).fill(['turn-1', BODY]));
    for (const got of receiver.received) got.verified(SECRET);
  });

  it('WEBHOOK-RESULT: many at once do not get in each other’s way, and leave no connection behind', async () => {
    const reactions: Reaction[] = [{ status: 200 }, 'reset', { status: 500 }, 'slow-body', 'hang', 'close'];
    receiver.react(...reactions);
    const results = await Promise.all(
      reactions.map((_, index) => port.call(callOf({ id: `t${index}` }), Deadline.after(SHORT_MS))),
    );
    const kinds = results.map(({ kind }) => kind).sort();
    expect(kinds).toEqual(['accepted', 'accepted', 'not-delivered', 'unknown', 'unknown', 'unknown']);
    await until(() => receiver.connections === 0);
  });

  describe('over TLS', () => {
    let agent: WebhookReceiver;
    beforeAll(async () => {
      agent = await WebhookReceiver.start(AGENT_CERTIFICATE);
    });
    afterAll(() => agent.close());

    class Trusting extends SocketConnector {
      protected override readonly trust = { ca: AGENT_CERTIFICATE.cert };
    }
    class Loopback extends NameResolver {
      override addressesOf = () => Promise.resolve(['127.0.0.1']);
    }
    const callsBy = (connector: SocketConnector) => new WebhookCalls(env, new SystemClock(), new Loopback(), connector);
    const send = (connector: SocketConnector, host: string, body = BODY, milliseconds = 20_000) =>
      callsBy(connector).call(callOf({ url: agent.url('/hook', host), body }), Deadline.after(milliseconds));

    it('WEBHOOK-SIGNED: an agent with a certificate for its name is called', async () => {
      expect(await send(new Trusting(), 'agent.example')).toEqual(ACCEPTED);
      expect(agent.received[0]?.headers.host).toBe(`agent.example:${agent.port}`);
      expect(agent.received[0]?.verified(SECRET)).toEqual(JSON.parse(BODY));
    });

    it('WEBHOOK-RESULT: a certificate that is not trusted, or for another name or an address, is not delivered', async () => {
      const before = agent.begun;
      expect(await send(new SocketConnector(), 'agent.example')).toEqual(notDelivered('DEPTH_ZERO_SELF_SIGNED_CERT'));
      for (const host of ['other.example', '127.0.0.1']) {
        expect(await send(new Trusting(), host)).toEqual(notDelivered('ERR_TLS_CERT_ALTNAME_INVALID'));
      }
      expect(agent.begun).toBe(before);
    });

    it('WEBHOOK-RESULT: a peer that speaks no TLS, or never gets done with it, is not delivered', async () => {
      const url = receiver.url().replace('http:', 'https:');
      expect(await port.call(callOf({ url }), Deadline.after(20_000))).toMatchObject({ kind: 'not-delivered' });
      const mute = createServer((socket) => socket.on('error', () => undefined).resume());
      await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
      const { port: mutePort } = mute.address() as AddressInfo;
      const call = callOf({ url: `https://127.0.0.1:${mutePort}/` });
      expect(await port.call(call, Deadline.after(300))).toEqual(notDelivered('timeout'));
      await new Promise((resolve) => mute.close(resolve));
    });

    it('WEBHOOK-RESULT: it is told as without TLS what has become of a call', async () => {
      const told = async (reaction: Reaction, body = BODY, milliseconds = 20_000) => {
        // A call that gives up early leaves its reaction to the next one.
        agent.forget();
        agent.react(reaction);
        return send(new Trusting(), 'agent.example', body, milliseconds);
      };
      expect(await told('reset')).toEqual(unknown('ECONNRESET'));
      expect(await told('hang', BODY, SHORT_MS)).toEqual(unknown('timeout'));
      expect(await told('reset-before-body', HUGE_BODY)).toMatchObject({ kind: 'not-delivered' });
      expect(await told('never-read', HUGE_BODY, SHORT_MS)).toEqual(notDelivered('timeout'));
      expect(await told({ status: 500 })).toEqual(notDelivered('status 500'));
    });
  });
});
