import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { callText, McpCaller, RawBody, RestCaller } from '../support/callers.js';
import { dumpOf } from '../support/dump.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, ask, makeEstate, type Estate } from '../support/estate.js';

/** An answer that nobody may give, to a bundle of the questions q1 and q2. The sentence begins with the field. */
interface BadAnswer {
  readonly what: string;
  /** A value, or the JSON text of an object as it is sent. */
  readonly outcome: object | string;
  readonly says: string;
}

const entry = (over: object = {}) => ({ question_id: 'q1', selected_options: ['left'], custom_text: '', ...over });
const second = { question_id: 'q2', selected_options: ['right'] };
/** A whole answer in which the first entry is something else. */
const withEntry = (over: object) => ({ answers: [entry(over), second] });
const UNKNOWN = 'is not a known field';

const BAD: Readonly<Record<string, readonly BadAnswer[]>> = {
  'N6, N6a': [
    ['no answers', {}, 'answers must have exactly one entry per question: expected 2, got 0'],
    ['an empty list', { answers: [] }, 'answers must have exactly one entry per question: expected 2, got 0'],
    ['an entry too few', { answers: [entry()] }, 'answers must have exactly one entry per question: expected 2, got 1'],
    ['a question twice', { answers: [entry(), entry()] }, 'answers[1].question_id repeats'],
    ['an entry too many', { answers: [entry(), second, entry()] }, 'answers[2].question_id repeats'],
    ['an unknown question', withEntry({ question_id: 'q3' }), 'answers[0].question_id is not the id of a question'],
    ['a question in other letters', withEntry({ question_id: 'Q1' }), 'answers[0].question_id is not the id'],
    ['an empty question id', withEntry({ question_id: '' }), 'answers[0].question_id must not be empty'],
    ['no question id', { answers: [{ selected_options: [] }, second] }, 'answers[0].question_id is required'],
    ['a member of every object', withEntry({ question_id: '__proto__' }), 'answers[0].question_id is not the id'],
  ].map(toCase),
  N8: [
    [
      'an unknown option',
      withEntry({ selected_options: ['left', 'up'] }),
      'answers[0].selected_options[1] is not the id',
    ],
    [
      'a label for an id',
      withEntry({ selected_options: ['Left of q1'] }),
      'answers[0].selected_options[0] is not the id',
    ],
    ['an empty option id', withEntry({ selected_options: [''] }), 'answers[0].selected_options[0] is not the id'],
    [
      'too many to look at',
      withEntry({ selected_options: Array(101).fill('left') }),
      'answers[0].selected_options must not',
    ],
  ].map(toCase),
  N8a: [
    ['a rejection with answers', { rejected: true, ...answersTo(['q1', 'q2']) }, 'answers must be empty or absent'],
    ['rejected false alone', { rejected: false }, 'answers must have exactly one entry per question'],
    ['a reason alone', { reject_reason: 'no' }, 'reject_reason can only be given together with rejected: true'],
    ['a reason with answers', { ...answersTo(['q1', 'q2']), reject_reason: 'no' }, 'reject_reason can only be given'],
  ].map(toCase),
  N8b: [
    [
      'a text of 2001',
      withEntry({ custom_text: 'x'.repeat(2001) }),
      'answers[0].custom_text must not be longer than 2000',
    ],
    [
      '2001 emoji',
      withEntry({ custom_text: '😀'.repeat(2001) }),
      'answers[0].custom_text must not be longer than 2000',
    ],
    [
      '2001 that trimming would save',
      withEntry({ custom_text: ' '.repeat(2001) }),
      'answers[0].custom_text must not be',
    ],
    [
      'a reason of 2001',
      { rejected: true, reject_reason: 'x'.repeat(2001) },
      'reject_reason must not be longer than 2000',
    ],
  ].map(toCase),
  'BAD-TYPES': [
    ...['text', 7, true, null, {}].map((answers) => [
      `answers ${JSON.stringify(answers)}`,
      { answers },
      answers === null ? 'answers must not be null' : 'answers must be a list',
    ]),
    ...[null, 'q1', 7, []].map((one) => [
      `an entry ${JSON.stringify(one)}`,
      { answers: [second, one] },
      'answers[1] must be an object',
    ]),
    ...[7, true, [], {}].map((id) => [
      `a question id ${JSON.stringify(id)}`,
      withEntry({ question_id: id }),
      'answers[0].question_id must be text',
    ]),
    ['a null question id', withEntry({ question_id: null }), 'answers[0].question_id must not be null'],
    ['options as text', withEntry({ selected_options: 'left' }), 'answers[0].selected_options must be a list'],
    ['null for options', withEntry({ selected_options: null }), 'answers[0].selected_options must not be null'],
    ...[7, null, [], {}, true].map((option) => [
      `an option ${JSON.stringify(option)}`,
      withEntry({ selected_options: ['left', option] }),
      'answers[0].selected_options[1] must be text',
    ]),
    ...[7, true, [], {}].map((text) => [
      `a text ${JSON.stringify(text)}`,
      withEntry({ custom_text: text }),
      'answers[0].custom_text must be text',
    ]),
    ['a null text', withEntry({ custom_text: null }), 'answers[0].custom_text must not be null'],
    ...['true', 1, 0, [], {}].map((rejected) => [
      `rejected ${JSON.stringify(rejected)}`,
      { rejected },
      'rejected must be true or false',
    ]),
    ['rejected null', { rejected: null }, 'rejected must not be null'],
    ['a reason that is a number', { rejected: true, reject_reason: 7 }, 'reject_reason must be text'],
    ['a null reason', { rejected: true, reject_reason: null }, 'reject_reason must not be null'],
    ['more entries than are looked at', { answers: Array(101).fill(entry()) }, 'answers must not have more than 100'],
  ].map(toCase),
  'UNKNOWN-FIELDS': [
    ['answer', { answer: [entry(), second] }, `answer ${UNKNOWN}`],
    ['reason', { rejected: true, reason: 'no' }, `reason ${UNKNOWN}`],
    ['claimed', { ...answersTo(['q1', 'q2']), claimed: true }, `claimed ${UNKNOWN}`],
    ['in an entry', withEntry({ text: 'no' }), `answers[0].text ${UNKNOWN}`],
    ['options', withEntry({ options: ['left'] }), `answers[0].options ${UNKNOWN}`],
    ['constructor', { ...answersTo(['q1', 'q2']), constructor: 1 }, `constructor ${UNKNOWN}`],
    ['toString in an entry', withEntry({ toString: 'x' }), `answers[0].toString ${UNKNOWN}`],
    ['__proto__', '{"rejected":true,"__proto__":{}}', `__proto__ ${UNKNOWN}`],
    ['__proto__ in an entry', '{"answers":[{"question_id":"q1","__proto__":{}}]}', `answers[0].__proto__ ${UNKNOWN}`],
    ['a name that cannot be shown', { 'a\n\u0000b': 1 }, `"a\\n\\u0000b" ${UNKNOWN}`],
    ['an empty name', { '': 1 }, `"" ${UNKNOWN}`],
  ].map(toCase),
  'BAD-TEXT': ['\u0000', 'a\u0000b', '\ud800', 'a\udfff', '\udc00\ud800'].flatMap((text) =>
    [
      [
        'a text',
        withEntry({ custom_text: text }),
        'answers[0].custom_text must not contain U+0000 or a lone surrogate',
      ],
      [
        'a reason',
        { rejected: true, reject_reason: text },
        'reject_reason must not contain U+0000 or a lone surrogate',
      ],
      ['a question id', withEntry({ question_id: text }), 'answers[0].question_id must not contain U+0000'],
      ['an option', withEntry({ selected_options: [text] }), 'answers[0].selected_options[0] must not contain U+0000'],
    ].map(([what, ...rest]) => toCase([`${JSON.stringify(text)} in ${what as string}`, ...rest])),
  ),
};

function toCase([what, outcome, says]: unknown[]): BadAnswer {
  return { what: String(what), outcome: outcome as object | string, says: String(says) };
}

const textOf = (outcome: object | string): string => (typeof outcome === 'string' ? outcome : JSON.stringify(outcome));

describeEachEngine('N8c, N8d', (engine) => {
  let database: TestDatabase;
  let app: RunningApp;
  let rest: RestCaller;
  let mcp: McpCaller;
  let open: string;
  let answered: string;
  let superseded: string;
  let estate: Estate;
  beforeAll(async () => {
    database = await engine.createDatabase();
    app = await startApp(database, { env: { BODY_LIMIT_BYTES: '1048576' } });
    rest = new RestCaller(app.url);
    mcp = await McpCaller.open(app.url);
    const questions = ['q1', 'q2'];
    const old = await makeEstate(rest, { questions });
    superseded = old.pendingId;
    await rest.make('POST', `/task-sessions/${old.sessionId}/turns`, {});
    const done = await makeEstate(rest, { questions });
    answered = done.pendingId;
    await rest.make('POST', `/clarification/${answered}/respond`, answersTo(questions));
    estate = await makeEstate(rest, { questions });
    open = estate.pendingId;
  });
  afterAll(() => app.close());

  const respond = (pendingId: string, outcome: object | string) =>
    rest.post(`/clarification/${pendingId}/respond`, new RawBody(textOf(outcome)));
  const answer = (pendingId: string, outcome: object | string) =>
    mcp.call(
      'answer_question_kandev',
      new RawBody(
        `{"pending_id":${JSON.stringify(pendingId)},${textOf(outcome).replace(/^\{/, '')}`.replace(/,\}$/, '}'),
      ),
    );

  for (const [rules, cases] of Object.entries(BAD)) {
    it.each(cases.map((one) => [one.what, one] as const))(
      `R2c, ${rules}: %s is the same clear refusal on both surfaces, whatever the state of the bundle, and writes nothing`,
      async (_, { outcome, says }) => {
        const before = await dumpOf(database);
        for (const pendingId of [open, answered, superseded]) {
          const overRest = await respond(pendingId, outcome);
          expect([overRest.status, overRest.json]).toEqual([
            400,
            { error: expect.stringContaining(says), code: 'validation_failed' },
          ]);
          expect(overRest.json.error.startsWith(says)).toBe(true);
          const overMcp = await answer(pendingId, outcome);
          expect(overMcp).toEqual({ isError: true, text: `validation_failed: ${overRest.json.error}` });
        }
        expect(await dumpOf(database)).toEqual(before);
      },
    );
  }

  it('N8a: rejected false alone is the wrong count for a bundle of one question too', async () => {
    const pendingId = await ask(new RestCaller(app.url, estate.agentToken), estate.sessionId, ['only']);
    const sentence = 'answers must have exactly one entry per question: expected 1, got 0';
    expect((await respond(pendingId, { rejected: false })).json).toEqual({
      error: sentence,
      code: 'validation_failed',
    });
    expect((await answer(pendingId, { rejected: false })).text).toBe(`validation_failed: ${sentence}`);
  });

  describe('BAD-TYPES: what is no answer at all', () => {
    it.each([
      ['null', 'outcome must be an object'],
      ['[]', 'outcome must be an object'],
      ['"rejected"', 'outcome must be an object'],
      ['7', 'outcome must be an object'],
      ['{', 'body must be JSON'],
      ['{"rejected":true}{', 'body must be JSON'],
      ["{'rejected':true}", 'body must be JSON'],
      ['\ufeff', 'body must be JSON'],
      [`{"answers":${'['.repeat(20_000)}${']'.repeat(20_000)}}`, 'body must not be nested more than'],
      [`{"answers":[${'0,'.repeat(200_000)}0]}`, 'body must not hold more than'],
    ])('REST refuses the body %.30s and writes nothing', async (body, says) => {
      const before = await dumpOf(database);
      const response = await rest.post(`/clarification/${open}/respond`, new RawBody(body));
      expect([response.status, response.json.code]).toEqual([400, 'validation_failed']);
      expect(response.json.error).toMatch(new RegExp(`^${says}`));
      expect(await dumpOf(database)).toEqual(before);
    });

    it('a body that is not UTF-8, of another type, or of 10 MB, is refused on both surfaces and writes nothing', async () => {
      const before = await dumpOf(database);
      const path = `/clarification/${open}/respond`;
      const broken = Buffer.concat([
        Buffer.from('{"rejected":true,"reject_reason":"'),
        Buffer.from([0xff]),
        Buffer.from('"}'),
      ]);
      expect((await rest.post(path, new RawBody(broken))).json).toEqual({
        error: 'body must be UTF-8',
        code: 'validation_failed',
      });
      const plain = await rest.post(path, new RawBody('{"rejected":true}', 'text/plain'));
      expect([plain.status, plain.json.code]).toEqual([415, 'unsupported_media_type']);
      const huge = { ...answersTo(['q1', 'q2'], 'x'.repeat(10 * 1024 * 1024)) };
      const overRest = await rest.post(path, huge);
      const overMcp = await mcp.post(
        callText(1, 'tools/call', { name: 'answer_question_kandev', arguments: { pending_id: open, ...huge } }),
      );
      for (const response of [overRest, overMcp]) {
        expect([response.status, response.json]).toEqual([
          413,
          { error: 'the body must not be larger than 1048576 bytes', code: 'payload_too_large' },
        ]);
      }
      const deep = `{"pending_id":"${open}","answers":${'['.repeat(2_000)}${']'.repeat(2_000)}}`;
      const nested = await mcp.post(
        callText(1, 'tools/call', { name: 'answer_question_kandev', arguments: new RawBody(deep) }),
      );
      expect([nested.status, nested.json.code]).toEqual([400, 'validation_failed']);
      expect(await dumpOf(database)).toEqual(before);
    });

    it.each(['null', '[]', '"text"', '7'])(
      'a tool call whose arguments are %s is refused and writes nothing',
      async (args) => {
        const before = await dumpOf(database);
        const response = await mcp.post(
          callText(1, 'tools/call', { name: 'answer_question_kandev', arguments: new RawBody(args) }),
        );
        expect(response.status).toBe(200);
        expect(response.text).toMatch(/"code":-3260\d|validation_failed: /);
        expect(await dumpOf(database)).toEqual(before);
      },
    );

    it.each([
      ['no pending_id', {}, 'validation_failed: pending_id is required'],
      ['a number', { pending_id: 7 }, 'validation_failed: pending_id must be text'],
      ['null', { pending_id: null }, 'validation_failed: pending_id must not be null'],
      ['an object', { pending_id: {} }, 'validation_failed: pending_id must be text'],
    ])('the tool names the pending_id when it is %s', async (_, args, text) => {
      expect(await mcp.call('answer_question_kandev', { ...args, ...answersTo(['q1', 'q2']) })).toEqual({
        isError: true,
        text,
      });
    });
  });

  it('L16: any outcome for a bundle with a row without a question id says so on both surfaces, and writes nothing', async () => {
    for (const questionId of [undefined, '', 7, null]) {
      const { pendingId } = await makeEstate(rest, { questions: ['q1', 'q2'] });
      await setQuestionId(pendingId, questionId);
      const before = await dumpOf(database);
      for (const outcome of [answersTo(['q1', 'q2']), answersTo(['q1']), { rejected: true }, { nonsense: 1 }]) {
        const overRest = await respond(pendingId, outcome);
        expect([overRest.status, overRest.json]).toEqual([
          400,
          {
            error: expect.stringMatching(/^question_id is missing on a question of this request/),
            code: 'validation_failed',
          },
        ]);
        expect((await answer(pendingId, outcome)).text).toBe(`validation_failed: ${overRest.json.error}`);
      }
      expect(await dumpOf(database)).toEqual(before);
      // Cancelling is its way out.
      await rest.make('POST', `/clarification/${pendingId}/cancel`);
    }
  });

  /** Of the bundle's second row. */
  async function setQuestionId(pendingId: string, questionId: unknown): Promise<void> {
    const { rows } = await database.sql<{ id: string; metadata: string }>(
      `SELECT id, metadata FROM task_session_messages WHERE content = 'Which of q2?'`,
    );
    for (const { id, metadata } of rows) {
      const document = JSON.parse(metadata) as Record<string, unknown>;
      if (document['pending_id'] !== pendingId) continue;
      const changed = JSON.stringify({ ...document, question_id: questionId });
      await database.sql('UPDATE task_session_messages SET metadata = $2 WHERE id = $1', [id, changed]);
    }
  }
});
