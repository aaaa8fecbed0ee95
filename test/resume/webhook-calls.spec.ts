import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { SystemClock } from '../../src/common/clock.js';
import { Deadline } from '../../src/common/deadline.js';
import { loadEnv } from '../../src/config/env.js';
import type { AgentCall } from '../../src/tasks/resume/resume.port.js';
import { SocketConnector } from '../../src/tasks/resume/webhook/connector.js';
import { DnsResolver } from '../../src/tasks/resume/webhook/name-resolver.js';
import { WebhookCalls } from '../../src/tasks/resume/webhook/webhook-calls.js';
import { until } from '../support/until.js';
import { WebhookReceiver, type Reaction } from '../support/webhook-receiver.js';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const BODY = JSON.stringify({ type: 'turn.prompted', prompt: 'Grüße, 你好 \u{1f600} "quoted"\n' });
/** Beyond what the buffers of two sockets hold. */
const HUGE_BODY = JSON.stringify({ prompt: 'x'.repeat(32_000_000) });

const ACCEPTED = { kind: 'accepted' };
const notDelivered = (reason: string) => ({ kind: 'not-delivered', reason });
const unknown = (reason: string) => ({ kind: 'unknown', reason });

describe('calling a webhook', () => {
  const port = new WebhookCalls(
    loadEnv({ WEBHOOK_ALLOW_PRIVATE: 'true' }),
    new SystemClock(),
    new DnsResolver(),
    new SocketConnector(),
  );
  let receiver: WebhookReceiver;

  beforeAll(async () => {
    receiver = await WebhookReceiver.start();
  });
  afterEach(async () => {
    receiver.received.length = 0;
    receiver.readOn();
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
    expect(await callWith('hang', {}, 300)).toEqual(unknown('timeout'));
    expect(receiver.received).toHaveLength(1);
  });

  it('WEBHOOK-RESULT: a reset before the body was sent is not delivered', async () => {
    expect(await callWith('reset-before-body', { body: HUGE_BODY })).toMatchObject({ kind: 'not-delivered' });
    expect(receiver.received).toHaveLength(0);
  });

  it('WEBHOOK-RESULT: a deadline before the body was sent is not delivered', async () => {
    expect(await callWith('never-read', { body: HUGE_BODY }, 500)).toEqual(notDelivered('timeout'));
    expect(receiver.received).toHaveLength(0);
  });
});
