import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { RestCaller, type Heard, type Json } from '../support/callers.js';
import { dumpOf } from '../support/dump.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';

const HOOK = 'https://agent.example/hook?key=in-the-query';
const OTHER_HOOK = 'https://agent.example:8443/other';
const SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes, ok').toString('base64')}`;
const MADE = expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/);
const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 0xfb).toString('base64')}`;

describeEachEngine('resume settings over REST', (engine) => {
  let database: TestDatabase;
  let app: RunningApp;
  let rest: RestCaller;
  let taskId: string;
  /** Everything that was replied since the start, without what is shown once. */
  const replied: string[] = [];
  const shown: string[] = [];

  beforeAll(async () => {
    database = await engine.createDatabase();
    app = await startApp(database);
    rest = new RestCaller(app.url);
    taskId = (await rest.make('POST', '/tasks', { title: 'Called' })).id;
  });
  afterAll(() => app.close());

  async function send(method: string, path: string, body?: unknown): Promise<Heard> {
    const heard = await rest.send(method, path, body);
    const { webhook_secret: secret, ...others } = heard.json ?? {};
    if (secret !== undefined) shown.push(secret);
    replied.push(JSON.stringify(others));
    return heard;
  }

  const create = (resume: unknown) => send('POST', `/tasks/${taskId}/sessions`, { resume });
  const change = (id: string, resume: unknown) => send('PATCH', `/task-sessions/${id}`, { resume });

  async function stored(id: string): Promise<unknown> {
    const { task_sessions: sessions } = (await dumpOf(database)) as Record<string, Json[]>;
    return JSON.parse(sessions?.find((session) => session.id === id)?.resume);
  }

  it('WEBHOOK-SETTINGS: a secret that was not given is made, shown once in that reply, and never again', async () => {
    const created = await create({ mode: 'webhook', url: HOOK });
    expect(created).toMatchObject({
      status: 201,
      json: { resume: { mode: 'webhook', url: HOOK }, webhook_secret: MADE },
    });
    expect(created.json.resume).toEqual({ mode: 'webhook', url: HOOK });
    const { id, webhook_secret: secret } = created.json;
    expect(await stored(id)).toEqual({ mode: 'webhook', url: HOOK, secret });
    const read = await send('GET', `/task-sessions/${id}`);
    expect(read.json.resume).toEqual({ mode: 'webhook', url: HOOK });
    const listed = await send('GET', `/tasks/${taskId}/task-sessions`);
    const changed = await change(id, { mode: 'webhook', url: OTHER_HOOK });
    for (const { text } of [read, listed, changed]) expect(text).not.toContain('secret');
  });

  it('WEBHOOK-SETTINGS: a secret that was given is kept and not repeated', async () => {
    const { status, json, text } = await create({ mode: 'webhook', url: HOOK, secret: SECRET });
    expect([status, text.includes('secret')]).toEqual([201, false]);
    expect(await stored(json.id)).toEqual({ mode: 'webhook', url: HOOK, secret: SECRET });
  });

  it('WEBHOOK-SETTINGS: a webhook that only moves keeps its secret; a new one gives it another', async () => {
    const { json } = await create({ mode: 'webhook', url: HOOK, secret: SECRET });
    const moved = await change(json.id, { mode: 'webhook', url: OTHER_HOOK });
    expect([moved.status, moved.json.resume]).toEqual([200, { mode: 'webhook', url: OTHER_HOOK }]);
    expect(await stored(json.id)).toEqual({ mode: 'webhook', url: OTHER_HOOK, secret: SECRET });
    await change(json.id, { mode: 'webhook', url: OTHER_HOOK, secret: secretOf(24) });
    expect(await stored(json.id)).toEqual({ mode: 'webhook', url: OTHER_HOOK, secret: secretOf(24) });
  });

  it('WEBHOOK-SETTINGS: an agent that fetches becomes one that is called, and back, and its secret is gone then', async () => {
    const { json } = await create({ mode: 'pull' });
    const called = await change(json.id, { mode: 'webhook', url: HOOK });
    expect(called.json).toMatchObject({ resume: { mode: 'webhook', url: HOOK }, webhook_secret: MADE });
    const back = await change(json.id, { mode: 'pull' });
    expect(back.json.resume).toEqual({ mode: 'pull' });
    expect(await stored(json.id)).toEqual({ mode: 'pull' });
    const again = await change(json.id, { mode: 'webhook', url: HOOK });
    expect(again.json.webhook_secret).toEqual(MADE);
    expect(again.json.webhook_secret).not.toBe(called.json.webhook_secret);
  });

  describe('what cannot be used is a 400 that names the field, on creation and on change', () => {
    const private_ = 'must not lead to a private, loopback or link-local address';
    const secret = 'must be whsec_ and the base64 of 24 to 64 bytes';
    it.each<[unknown, string]>([
      [{ mode: 'webhook' }, 'resume.url is required for the mode webhook'],
      [{ mode: 'webhook', url: null }, 'resume.url must not be null'],
      [{ mode: 'webhook', url: 7 }, 'resume.url must be text'],
      [{ mode: 'webhook', url: '' }, 'resume.url must be an absolute URL'],
      [{ mode: 'webhook', url: '/hook' }, 'resume.url must be an absolute URL'],
      [{ mode: 'webhook', url: '//agent.example/hook' }, 'resume.url must be an absolute URL'],
      [
        { mode: 'webhook', url: ' https://agent.example' },
        'resume.url must not contain white space or control characters',
      ],
      [
        { mode: 'webhook', url: 'https://agent\n.example' },
        'resume.url must not contain white space or control characters',
      ],
      [
        { mode: 'webhook', url: `https://agent.example/${'x'.repeat(2048)}` },
        'resume.url must not be longer than 2048 characters',
      ],
      [{ mode: 'webhook', url: 'http://agent.example/hook' }, 'resume.url must be an https URL'],
      [{ mode: 'webhook', url: 'ftp://agent.example/hook' }, 'resume.url must be an https URL'],
      [{ mode: 'webhook', url: 'javascript:alert(1)' }, 'resume.url must be an https URL'],
      [{ mode: 'webhook', url: 'https://me:pw@agent.example' }, 'resume.url must not contain a user name or password'],
      [{ mode: 'webhook', url: 'https://me@agent.example' }, 'resume.url must not contain a user name or password'],
      [{ mode: 'webhook', url: 'https://agent.example/#x' }, 'resume.url must not have a fragment'],
      [{ mode: 'webhook', url: 'https://agent.example/#' }, 'resume.url must not have a fragment'],
      ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '127.0.0.1.', '[::1]', '[::ffff:127.0.0.1]']
        .concat(
          '10.0.0.1',
          '192.168.1.1',
          '172.20.0.1',
          '169.254.169.254',
          '[fe80::1]',
          '[fd00:ec2::254]',
          '0',
          '0.0.0.0',
        )
        .concat('localhost', 'LOCALHOST', 'localhost.', 'a.localhost', '１２７.0.0.1', '[64:ff9b::a9fe:a9fe]')
        .map((host): [unknown, string] => [{ mode: 'webhook', url: `https://${host}/hook` }, `resume.url ${private_}`]),
      [{ mode: 'webhook', url: HOOK, secret: null }, 'resume.secret must not be null'],
      ...[
        '',
        'whsec_',
        SECRET.slice(6),
        secretOf(23),
        secretOf(65),
        `${SECRET}=`,
        `whsec_${'_'.repeat(32)}`,
        `whsec_${'A'.repeat(33)}B==`,
      ].map((text): [unknown, string] => [{ mode: 'webhook', url: HOOK, secret: text }, `resume.secret ${secret}`]),
      [{ mode: 'webhook', url: HOOK, token: 'x' }, 'resume.token is not a known field'],
      [{ mode: 'pull', url: HOOK }, 'resume.url is only for the mode webhook'],
      [{ mode: 'pull', secret: SECRET }, 'resume.secret is only for the mode webhook'],
    ])('WEBHOOK-SETTINGS: %j', async (resume, sentence) => {
      const { json: session } = await create({ mode: 'pull' });
      const refusals = [await create(resume), await change(session.id, resume)];
      for (const { status, json } of refusals) {
        expect([status, json]).toEqual([400, { error: sentence, code: 'validation_failed' }]);
      }
      expect(await stored(session.id)).toEqual({ mode: 'pull' });
    });

    it.each([24, 25, 26, 27, 32, 63, 64])('WEBHOOK-SETTINGS: a secret of %i bytes is taken', async (bytes) => {
      expect((await create({ mode: 'webhook', url: HOOK, secret: secretOf(bytes) })).status).toBe(201);
    });
  });

  it('WEBHOOK-SETTINGS: where private targets are allowed they may be set, and plain http too', async () => {
    const inside = await startApp(await engine.createDatabase(), { env: { WEBHOOK_ALLOW_PRIVATE: 'true' } });
    try {
      const caller = new RestCaller(inside.url);
      const task = await caller.make('POST', '/tasks', { title: 'Inside' });
      for (const url of [
        'http://127.0.0.1:8080/hook',
        'https://localhost/hook',
        'http://[::1]/',
        'https://10.0.0.1/',
      ]) {
        const { status, json } = await caller.send('POST', `/tasks/${task.id}/sessions`, {
          resume: { mode: 'webhook', url },
        });
        expect([status, json.resume]).toEqual([201, { mode: 'webhook', url }]);
      }
      const { json } = await caller.send('POST', `/tasks/${task.id}/sessions`, {
        resume: { mode: 'webhook', url: 'ftp://a/' },
      });
      expect(json.error).toBe('resume.url must be an https or http URL');
    } finally {
      await inside.close();
    }
  });

  it('WEBHOOK-SETTINGS, NO-SECRETS: none of the secrets is in any other reply or in the log, nor the query of a url', () => {
    expect(shown.length).toBeGreaterThan(2);
    const log = JSON.stringify(app.logged);
    for (const secret of [...shown, SECRET, secretOf(24)]) {
      const bare = secret.slice('whsec_'.length);
      expect([log.includes(bare), replied.some((reply) => reply.includes(bare))]).toEqual([false, false]);
    }
    expect(log).not.toContain('in-the-query');
  });
});
