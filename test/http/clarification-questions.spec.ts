import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RawBody, RestCaller, type Json } from '../support/callers.js';
import { dumpOf } from '../support/dump.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { makeEstate } from '../support/estate.js';
import { questionOf } from '../support/question.js';

/** Something that cannot be asked. The sentence begins with the field. */
interface BadRequest {
  readonly what: string;
  /** A value, or the JSON text of an object as it is sent. */
  readonly input: object | string;
  readonly says: string;
}

const option = (over: object = {}) => ({ option_id: 'a', label: 'A', ...over });
const other = { option_id: 'b', label: 'B' };
const question = (over: object = {}) => ({ id: 'q1', prompt: 'Which?', options: [option(), other], ...over });
const asking = (over: object) => ({ questions: [question(over)] });
const withOption = (over: object) => asking({ options: [other, option(over)] });
const UNKNOWN = 'is not a known field';
const UNSTORABLE = 'must not contain U+0000 or a lone surrogate';
const RESERVED = ['rejected', 'reject_reason', 'status', 'pending_id', '__proto__', 'constructor', 'prototype'];

const BAD: Readonly<Record<string, readonly BadRequest[]>> = {
  'CREATE-COUNT': [
    ['no questions', {}, 'questions is required'],
    ['an empty list', { questions: [] }, 'questions must not be empty'],
    [
      'five',
      { questions: ['1', '2', '3', '4', '5'].map((id) => question({ id })) },
      'questions must not have more than 4',
    ],
    ['no prompt', asking({ prompt: undefined }), 'questions[0].prompt is required'],
    ['an empty prompt', asking({ prompt: '' }), 'questions[0].prompt must not be blank'],
    ['a blank prompt', asking({ prompt: ' \n\t ' }), 'questions[0].prompt must not be blank'],
    ['no options', asking({ options: undefined }), 'questions[0].options is required'],
    ['an empty list of options', asking({ options: [] }), 'questions[0].options must have at least 2'],
    ['one option', asking({ options: [option()] }), 'questions[0].options must have at least 2'],
    [
      'seven options',
      asking({ options: ['1', '2', '3', '4', '5', '6', '7'].map((id) => option({ option_id: id })) }),
      'questions[0].options must not have more than 6',
    ],
    ['no label', withOption({ label: undefined }), 'questions[0].options[1].label is required'],
    ['an empty label', withOption({ label: '' }), 'questions[0].options[1].label must not be blank'],
    ['a blank label', withOption({ label: '  ' }), 'questions[0].options[1].label must not be blank'],
  ].map(toCase),
  'CREATE-IDS': [
    ...RESERVED.map((id) => [`the question id ${id}`, asking({ id }), `questions[0].id must not be ${id}`]),
    ...['', 'a b', 'ä', 'a/b', 'x'.repeat(65), 'a\n'].map((id) => [
      `the question id ${JSON.stringify(id).slice(0, 20)}`,
      asking({ id }),
      'questions[0].id must be 1 to 64 of the characters',
    ]),
    ...['', 'a b', 'é', 'x'.repeat(65)].map((id) => [
      `the option id ${JSON.stringify(id).slice(0, 20)}`,
      withOption({ option_id: id }),
      'questions[0].options[1].option_id must be 1 to 64 of the characters',
    ]),
    ['a question id twice', { questions: [question(), question()] }, 'questions[1].id q1 is already the id'],
    [
      'an id that would be assigned to another',
      { questions: [question({ id: 'q2' }), question({ id: undefined })] },
      'questions[1].id must be given, because q2',
    ],
    ['an option id twice', withOption({ option_id: 'b' }), 'questions[0].options[1].option_id b is already the id'],
    [
      'an option id that would be assigned to another',
      asking({ options: [{ label: 'A', option_id: 'q1_opt2' }, { label: 'B' }] }),
      'questions[0].options[1].option_id must be given, because q1_opt2',
    ],
  ].map(toCase),
  'CREATE-SIZES': [
    ['a title of 201', asking({ title: 'x'.repeat(201) }), 'questions[0].title must not be longer than 200'],
    ['a prompt of 4001', asking({ prompt: 'x'.repeat(4001) }), 'questions[0].prompt must not be longer than 4000'],
    [
      'a label of 201',
      withOption({ label: '😀'.repeat(201) }),
      'questions[0].options[1].label must not be longer than 200',
    ],
    [
      'a description of 1001',
      withOption({ description: 'x'.repeat(1001) }),
      'questions[0].options[1].description must not be longer than 1000',
    ],
    ['a context of 16001', { ...asking({}), context: 'x'.repeat(16_001) }, 'context must not be longer than 16000'],
  ].map(toCase),
  'BAD-TYPES': [
    ...['text', 7, true, {}].map((questions) => [
      `questions ${JSON.stringify(questions)}`,
      { questions },
      'questions must be a list',
    ]),
    ['null for questions', { questions: null }, 'questions must not be null'],
    ...[null, 'Which?', 7, []].map((one) => [
      `a question ${JSON.stringify(one)}`,
      { questions: [question(), one] },
      'questions[1] must be an object',
    ]),
    ...[7, true, [], {}].flatMap((value) => [
      [`an id ${JSON.stringify(value)}`, asking({ id: value }), 'questions[0].id must be text'],
      [`a title ${JSON.stringify(value)}`, asking({ title: value }), 'questions[0].title must be text'],
      [`a prompt ${JSON.stringify(value)}`, asking({ prompt: value }), 'questions[0].prompt must be text'],
      [`a context ${JSON.stringify(value)}`, { ...asking({}), context: value }, 'context must be text'],
      [`a label ${JSON.stringify(value)}`, withOption({ label: value }), 'questions[0].options[1].label must be text'],
    ]),
    ['options as text', asking({ options: 'A, B' }), 'questions[0].options must be a list'],
    ['an option as text', asking({ options: ['A', 'B'] }), 'questions[0].options[0] must be an object'],
    ['a null option', asking({ options: [option(), null] }), 'questions[0].options[1] must be an object'],
    ['a null title', asking({ title: null }), 'questions[0].title must not be null'],
    ['a null description', withOption({ description: null }), 'questions[0].options[1].description must not be null'],
    ['a null context', { ...asking({}), context: null }, 'context must not be null'],
  ].map(toCase),
  'UNKNOWN-FIELDS': [
    ['question', { ...asking({}), question: 'Which?' }, `question ${UNKNOWN}`],
    ['pending_id', { ...asking({}), pending_id: 'mine' }, `pending_id ${UNKNOWN}`],
    ['in a question', asking({ question: 'Which?' }), `questions[0].question ${UNKNOWN}`],
    ['a status', asking({ status: 'answered' }), `questions[0].status ${UNKNOWN}`],
    ['in an option', withOption({ id: 'a' }), `questions[0].options[1].id ${UNKNOWN}`],
    ['__proto__', '{"questions":[],"__proto__":{}}', `__proto__ ${UNKNOWN}`],
    ['constructor in an option', withOption({ constructor: 1 }), `questions[0].options[1].constructor ${UNKNOWN}`],
  ].map(toCase),
  'BAD-TEXT': ['\u0000', 'a\u0000b', '\ud800', 'a\udfff'].flatMap((text) =>
    [
      ['a title', asking({ title: text }), `questions[0].title ${UNSTORABLE}`],
      ['a prompt', asking({ prompt: text }), `questions[0].prompt ${UNSTORABLE}`],
      ['a label', withOption({ label: text }), `questions[0].options[1].label ${UNSTORABLE}`],
      ['a description', withOption({ description: text }), `questions[0].options[1].description ${UNSTORABLE}`],
      ['a context', { ...asking({}), context: text }, `context ${UNSTORABLE}`],
      ['an id', asking({ id: text }), 'questions[0].id must'],
    ].map(([what, ...rest]) => toCase([`${JSON.stringify(text)} in ${what as string}`, ...rest])),
  ),
};

function toCase([what, input, says]: unknown[]): BadRequest {
  return { what: String(what), input: input as object | string, says: String(says) };
}

const textOf = (input: object | string): string => (typeof input === 'string' ? input : JSON.stringify(input));

describeEachEngine('asking', (engine) => {
  let database: TestDatabase;
  let app: RunningApp;
  let rest: RestCaller;
  let sessionId: string;
  let mcp: McpCaller;
  beforeAll(async () => {
    database = await engine.createDatabase();
    app = await startApp(database);
    rest = new RestCaller(app.url);
    ({ sessionId } = await makeEstate(rest));
    mcp = await McpCaller.open(app.url, `/mcp/sessions/${sessionId}`);
  });
  afterAll(() => app.close());

  /** The tool has no session_id: it is the session of its endpoint. */
  const overRest = (input: object | string) =>
    rest.post(
      '/clarification/request',
      new RawBody(`{"session_id":"${sessionId}",${textOf(input).slice(1)}`.replace(/,\}$/, '}')),
    );
  const overMcp = (input: object | string, tool = mcp) =>
    tool.call('ask_user_question_kandev', new RawBody(textOf(input)));

  for (const [rules, cases] of Object.entries(BAD)) {
    it.each(cases.map((one) => [one.what, one] as const))(
      `${rules}, N8c, N8d: %s is the same clear refusal on both surfaces, and writes nothing`,
      async (_, { input, says }) => {
        const before = await dumpOf(database);
        const refused = await overRest(input);
        expect([refused.status, refused.json]).toEqual([
          400,
          { error: expect.stringContaining(says), code: 'validation_failed' },
        ]);
        expect(refused.json.error.startsWith(says)).toBe(true);
        expect(await overMcp(input)).toEqual({ isError: true, text: `validation_failed: ${refused.json.error}` });
        expect(await dumpOf(database)).toEqual(before);
      },
    );
  }

  it.each([
    [{ ...asking({}), session_id: undefined }, 'session_id is required'],
    [{ ...asking({}), session_id: 7 }, 'session_id must be text'],
    [{ ...asking({}), session_id: null }, 'session_id must not be null'],
    [{ ...asking({}), session_id: {} }, 'session_id must be text'],
  ])('BAD-TYPES: REST names the session_id of %j', async (input, error) => {
    const response = await rest.post('/clarification/request', input);
    expect([response.status, response.json]).toEqual([400, { error, code: 'validation_failed' }]);
  });

  it.each([
    [{ timeout_seconds: -1 }, 'timeout_seconds must be at least 0'],
    [{ timeout_seconds: 1.5 }, 'timeout_seconds must be a whole number'],
    [{ timeout_seconds: '5' }, 'timeout_seconds must be a whole number'],
    [{ timeout_seconds: null }, 'timeout_seconds must not be null'],
    [{ context_paragraphs: 'text' }, 'context_paragraphs must be a list'],
    [{ context_paragraphs: [7] }, 'context_paragraphs[0] must be text'],
    [{ context_paragraphs: ['\u0000'] }, `context_paragraphs[0] ${UNSTORABLE}`],
    [{ context_paragraphs: Array(101).fill('a') }, 'context_paragraphs must not have more than 100 entries'],
    [
      { context_paragraphs: ['x'.repeat(8_000), 'x'.repeat(8_000)] },
      'context_paragraphs must not be longer than 16000',
    ],
    [{ session_id: 'another' }, `session_id ${UNKNOWN}`],
    [{ task_id: 'another' }, `task_id ${UNKNOWN}`],
  ])('BAD-TYPES, ASK-CONTEXT: the tool refuses %.60j and writes nothing', async (input, says) => {
    const before = await dumpOf(database);
    const result = await overMcp({ ...asking({}), ...input });
    expect(result).toEqual({ isError: true, text: expect.stringContaining(`validation_failed: ${says}`) });
    expect(await dumpOf(database)).toEqual(before);
  });

  it('CREATE-SESSION: a task that is not the session’s is a 400, its own is not, and a session that has ended is a 409', async () => {
    const estate = await makeEstate(rest);
    const input = { session_id: estate.sessionId, ...asking({}) };
    const elsewhere = await makeEstate(rest);
    const before = await dumpOf(database);
    for (const taskId of [elsewhere.taskId, 'no-such-task', '', '\u0000']) {
      const refused = await rest.post('/clarification/request', { ...input, task_id: taskId });
      expect([refused.status, refused.json]).toEqual([
        400,
        { error: "task_id is not the session's task", code: 'validation_failed' },
      ]);
    }
    expect(await dumpOf(database)).toEqual(before);
    await rest.make('POST', '/clarification/request', { ...input, task_id: estate.taskId });

    const tool = await McpCaller.open(app.url, `/mcp/sessions/${estate.sessionId}`);
    for (const state of ['completed', 'failed', 'cancelled']) {
      await database.sql('UPDATE task_sessions SET state = $2 WHERE id = $1', [estate.sessionId, state]);
      const ended = await dumpOf(database);
      const sentence = `session is ${state}, which is final`;
      const refused = await rest.post('/clarification/request', { ...input, context: 'another' });
      expect([refused.status, refused.json]).toEqual([409, { error: sentence, code: 'conflict' }]);
      expect(await overMcp({ ...asking({}), context: 'another' }, tool)).toEqual({
        isError: true,
        text: `conflict: ${sentence}`,
      });
      expect(await dumpOf(database)).toEqual(ended);
    }
  });

  describe('what can be asked', () => {
    /** What the rows hold of a new bundle, asked through one of the surfaces. */
    async function asked(surface: 'REST' | 'MCP', input: object): Promise<Json[]> {
      const estate = await makeEstate(rest);
      await rest.make('POST', `/clarification/${estate.pendingId}/cancel`);
      let pendingId: string;
      if (surface === 'REST') {
        const request = { session_id: estate.sessionId, ...input };
        ({ pending_id: pendingId } = await rest.make('POST', '/clarification/request', request));
      } else {
        const tool = await McpCaller.open(app.url, `/mcp/sessions/${estate.sessionId}`);
        const result = await overMcp({ ...input, timeout_seconds: 0 }, tool);
        if (result.isError) throw new Error(result.text);
        expect(result.value).toEqual({ status: 'pending', pending_id: expect.any(String), next: expect.any(String) });
        pendingId = result.value.pending_id;
      }
      expect(pendingId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      const { rows } = await database.sql<{ metadata: string }>(
        `SELECT metadata FROM task_session_messages WHERE task_session_id = $1 AND type = 'clarification_request'
         ORDER BY id`,
        [estate.sessionId],
      );
      // Whether somebody still waits for what the tool has just let go is another subject.
      const documents = rows.map(({ metadata }) => {
        const { agent_disconnected: _, ...document } = JSON.parse(metadata);
        return document;
      });
      return documents.filter((document) => document.pending_id === pendingId);
    }

    it.each(['REST', 'MCP'] as const)('CREATE-IDS: ids are assigned by position over %s', async (surface) => {
      const bare = { prompt: 'Which?', options: [{ label: 'A' }, { label: 'B' }] };
      const [first, second] = await asked(surface, { questions: [bare, { ...bare, title: 'Second' }] });
      expect(first).toEqual({
        pending_id: expect.any(String),
        question_id: 'q1',
        question: {
          id: 'q1',
          title: '',
          prompt: 'Which?',
          options: [
            { option_id: 'q1_opt1', label: 'A', description: '' },
            { option_id: 'q1_opt2', label: 'B', description: '' },
          ],
        },
        question_index: 0,
        question_total: 2,
        context: '',
        status: 'pending',
      });
      expect(second).toMatchObject({ question_id: 'q2', question_index: 1, question: { title: 'Second' } });
      expect(second.question.options[1].option_id).toBe('q2_opt2');
    });

    it.each(['REST', 'MCP'] as const)(
      'CREATE-SIZES, CREATE-COUNT: the largest request there can be goes through over %s',
      async (surface) => {
        const at = (index: number) => ({
          id: `${index}`.padStart(64, 'x'),
          title: '😀'.repeat(200),
          prompt: '😀'.repeat(4000),
          options: Array.from({ length: 6 }, (_, n) => ({
            option_id: `${n}`.padStart(64, '-'),
            label: '😀'.repeat(200),
            description: '😀'.repeat(1000),
          })),
        });
        const rows = await asked(surface, { questions: [0, 1, 2, 3].map(at), context: '😀'.repeat(16_000) });
        expect(rows.map(({ question }) => question)).toEqual([0, 1, 2, 3].map(at));
        expect(rows[0].context).toBe('😀'.repeat(16_000));
      },
    );

    it('CREATE-DEDUP: the same again in the same turn is one bundle, over either surface and at the same instant', async () => {
      const estate = await makeEstate(rest);
      const tool = await McpCaller.open(app.url, `/mcp/sessions/${estate.sessionId}`);
      const input = { questions: [questionOf('same'), questionOf('again')], context: 'the same' };
      const viaRest = async () =>
        (await rest.make('POST', '/clarification/request', { session_id: estate.sessionId, ...input })).pending_id;
      const viaMcp = async () => (await overMcp({ ...input, timeout_seconds: 0 }, tool)).value.pending_id;
      const all = await Promise.all([viaRest(), viaMcp(), viaRest(), viaMcp(), viaRest(), viaMcp()]);
      expect(new Set(all).size).toBe(1);
      expect(await viaRest()).toBe(all[0]);
      const different = { session_id: estate.sessionId, ...input, questions: [...input.questions].reverse() };
      expect((await rest.make('POST', '/clarification/request', different)).pending_id).not.toBe(all[0]);
    });
  });
});
