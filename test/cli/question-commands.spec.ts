import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { command, commandProcess, refusal } from './command-line.js';

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

const QUESTION = {
  question_id: 'q1',
  title: 'Database',
  prompt: 'Which one?',
  status: 'pending',
  options: [
    { option_id: 'q1_opt1', label: 'SQLite', description: '' },
    { option_id: 'q1_opt2', label: 'PostgreSQL', description: 'when it grows' },
  ],
};
const BUNDLE = {
  pending_id: '11111111-1111-4111-8111-111111111111',
  task_id: 't1',
  session_id: 's1',
  created_at: '2026-01-31T09:00:00.000Z',
  age_seconds: 125,
  context: 'We start small.\nWe may grow.',
  questions: [QUESTION],
};
const ANSWERED = {
  success: true,
  claimed: true,
  delivered: true,
  status: 'answered',
  response: {
    pending_id: BUNDLE.pending_id,
    answers: [{ question_id: 'q1', selected_options: ['q1_opt2'], custom_text: 'soon' }],
    rejected: false,
    reject_reason: '',
    responded_at: '2026-01-31T09:01:00.000Z',
  },
};

describe('CLI: the commands that speak to a server', () => {
  let server: Server;
  let url: string;
  let seen: Seen[];
  let reply: (request: IncomingMessage, response: ServerResponse) => void;

  const json = (status: number, body: unknown) => (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };

  beforeEach(async () => {
    seen = [];
    server = createServer((request, response) => {
      void (async () => {
        let text = '';
        for await (const chunk of request) text += String(chunk);
        const { method, headers } = request;
        const body: unknown = text === '' ? undefined : JSON.parse(text);
        seen.push({ method, url: request.url, authorization: headers.authorization, body });
        reply(request, response);
      })();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  describe('question list', () => {
    it('shows each bundle with the ids that an answer needs, all pages in one list', async () => {
      const second = { ...BUNDLE, pending_id: '22222222-2222-4222-8222-222222222222', context: '', age_seconds: 7_300 };
      reply = (request, response) => {
        const isFirst = request.url?.includes('cursor') === false;
        json(200, { bundles: [isFirst ? BUNDLE : second], count: 1, next_cursor: isFirst ? 'a/b+c' : '' })(
          request,
          response,
        );
      };
      const outcome = await command(['question', 'list', '--workspace', 'w 1'], {
        CLARION_URL: url,
        CLARION_TOKEN: 'clu_x',
      });
      expect(outcome).toEqual({
        status: 0,
        stderr: '',
        stdout: [
          '11111111-1111-4111-8111-111111111111  task t1  2 min old',
          '  We start small.',
          '  We may grow.',
          '  q1: Database — Which one?',
          '    q1_opt1: SQLite',
          '    q1_opt2: PostgreSQL (when it grows)',
          '',
          '22222222-2222-4222-8222-222222222222  task t1  2 h old',
          '  q1: Database — Which one?',
          '    q1_opt1: SQLite',
          '    q1_opt2: PostgreSQL (when it grows)',
          '',
        ].join('\n'),
      });
      const authorization = 'Bearer clu_x';
      expect(seen).toEqual([
        { method: 'GET', url: '/api/v1/clarification?workspace_id=w+1&limit=200', authorization, body: undefined },
        {
          method: 'GET',
          url: '/api/v1/clarification?workspace_id=w+1&cursor=a%2Fb%2Bc&limit=200',
          authorization,
          body: undefined,
        },
      ]);
    });

    it('prints the same as JSON', async () => {
      reply = json(200, { bundles: [BUNDLE], count: 1, next_cursor: '' });
      const { stdout } = await command(['question', 'list', '--json', '--url', `${url}/`]);
      expect(JSON.parse(stdout)).toEqual({ bundles: [BUNDLE], count: 1, next_cursor: '' });
      expect(seen[0]?.authorization).toBeUndefined();
    });

    it('says so when nothing is open', async () => {
      reply = json(200, { bundles: [], count: 0, next_cursor: '' });
      expect((await command(['question', 'list', '--url', url])).stdout).toBe('no open questions\n');
    });

    it('lets no question drive the terminal', async () => {
      const evil = { ...QUESTION, prompt: 'red \u001b[31m\nalert', title: '\u202eeltit', status: 'answered' };
      reply = json(200, {
        bundles: [{ ...BUNDLE, context: '\u001b]52;c;x\u0007', questions: [evil] }],
        count: 1,
        next_cursor: '',
      });
      const { stdout } = await command(['question', 'list', '--url', url]);
      expect(stdout).toContain('  \ufffd]52;c;x\ufffd\n  q1 [answered]: \ufffdeltit — red \ufffd[31m alert\n');
    });
  });

  describe('question answer', () => {
    const answer = ['question', 'answer', BUNDLE.pending_id];

    it('sends what was chosen and said, as a process of its own', async () => {
      reply = json(200, ANSWERED);
      const args = [...answer, '--select', 'q1=q1_opt2', '--text', 'q1=soon', '--url', url];
      expect(await commandProcess(args, { CLARION_TOKEN: 'clu_x' })).toEqual({
        status: 0,
        stdout: 'answered\n',
        stderr: '',
      });
      expect(seen).toEqual([
        {
          method: 'POST',
          url: `/api/v1/clarification/${BUNDLE.pending_id}/respond`,
          authorization: 'Bearer clu_x',
          body: { answers: [{ question_id: 'q1', selected_options: ['q1_opt2'], custom_text: 'soon' }] },
        },
      ]);
    });

    it.each([
      [['--reject'], ''],
      [['--reject', 'not now'], 'not now'],
    ])('declines with %j', async (args, reason) => {
      reply = json(200, { ...ANSWERED, status: 'rejected', response: { ...ANSWERED.response, answers: [] } });
      expect((await command([...answer, '--url', url, ...args])).stdout).toBe('rejected\n');
      expect(seen[0]?.body).toEqual({ rejected: true, reject_reason: reason });
    });

    it('tells what somebody else answered before (R2)', async () => {
      reply = json(200, { ...ANSWERED, claimed: false, delivered: false });
      expect(await command([...answer, '--text', 'q1=mine', '--url', url])).toEqual({
        status: 0,
        stdout:
          'already answered; this is what counts:\n  q1: q1_opt2; soon\n' +
          'the agent has not taken it over yet; the same command tells whether it has\n',
        stderr: '',
      });
    });

    it('prints the reply as JSON', async () => {
      reply = json(200, ANSWERED);
      const { stdout } = await command([...answer, '--text', 'q1=soon', '--json', '--url', url]);
      expect(JSON.parse(stdout)).toEqual(ANSWERED);
    });

    it.each([
      [
        400,
        { error: 'answers must have one entry per question', code: 'validation_failed' },
        2,
        'answers must have one entry per question (validation_failed)',
      ],
      [
        401,
        { error: 'a token is required', code: 'unauthorized' },
        1,
        'a token is required (unauthorized); set CLARION_TOKEN',
      ],
      [
        404,
        { error: 'clarification request not found', code: 'not_found' },
        1,
        'clarification request not found (not_found)',
      ],
      [409, { error: 'no longer\n\u001bactive', code: 'not_active' }, 1, 'no longer \ufffdactive (not_active)'],
      [
        503,
        { error: 'temporarily unavailable', code: 'temporarily_unavailable' },
        1,
        'temporarily unavailable (temporarily_unavailable)',
      ],
      [502, '<html>', 1, 'the server replied with status 502'],
      [500, null, 1, 'the server replied with status 500'],
    ] as const)('says what a %d means in one line', async (status, body, exit, sentence) => {
      reply = json(status, body);
      expect(await command([...answer, '--reject', '--url', url])).toEqual(refusal(exit, sentence));
    });

    it.each([
      ['what is not JSON', 'ok'],
      ['half of it', '{"claimed":true'],
      ['another service', '{"ok":true}'],
      ['a reply without its answers', JSON.stringify({ ...ANSWERED, response: {} })],
    ])('never takes a 200 for success that holds %s', async (_, text) => {
      reply = (_request, response) => response.writeHead(200).end(text);
      expect(await command([...answer, '--reject', '--url', url])).toEqual(
        refusal(1, `${url}/ sent a reply that is not Clarion's; nothing is known, try again`),
      );
    });

    it('follows no redirect with its token', async () => {
      reply = (_request, response) => response.writeHead(307, { location: `${url}/elsewhere` }).end();
      const outcome = await command([...answer, '--reject', '--url', url], { CLARION_TOKEN: 'clu_x' });
      expect(outcome).toMatchObject({ status: 1, stdout: '' });
      expect(seen).toHaveLength(1);
    });

    it('can be sent again when the connection breaks', async () => {
      reply = (request) => request.socket.destroy();
      const outcome = await command([...answer, '--reject', '--url', url]);
      expect(outcome).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/^error: no reply from \S+ \(.+\); sending the same command again is safe\n$/),
      });
    });

    it('keeps any id inside its place in the path', async () => {
      reply = json(404, { error: 'clarification request not found', code: 'not_found' });
      await command(['question', 'answer', '../a b?c#d/%00', '--reject', '--url', `${url}/base`]);
      expect(seen[0]?.url).toBe('/base/api/v1/clarification/..%2Fa%20b%3Fc%23d%2F%2500/respond');
      for (const id of ['.', '..', '']) {
        expect(await command(['question', 'answer', id, '--reject', '--url', url])).toEqual(
          refusal(2, `"${id}" is not an id`),
        );
      }
    });
  });

  it('repeats no token in an error, however odd it is', async () => {
    for (const token of ['clu_sec\nret', 'clu_s€cret', 'clu sec']) {
      expect(await command(['question', 'list', '--url', url], { CLARION_TOKEN: token })).toEqual(
        refusal(2, 'CLARION_TOKEN is not a token'),
      );
    }
    expect(seen).toEqual([]);
  });

  it('looks where a server with the same settings listens', async () => {
    const { port } = server.address() as AddressInfo;
    reply = json(200, { bundles: [], count: 0, next_cursor: '' });
    const environment = { HOST: '0.0.0.0', PORT: String(port), AUTH_MODE: 'enforced' };
    expect((await command(['question', 'list'], environment)).status).toBe(0);
  });
});
