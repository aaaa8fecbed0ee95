import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  bundleTaskId,
  createdAtOf,
  inD2Order,
  isPendingStatus,
  readBundleRow,
  winnerResponse,
} from '../../../src/clarification/domain/bundle.js';
import { bundleView, bundleStatus } from '../../../src/clarification/domain/views.js';
import { answerPrompt } from '../../../src/clarification/domain/answer-prompt.js';
import { answer, metadataOf, NOON, PENDING_ID, row, stored } from './rows.js';

const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);

describe('reading a row', () => {
  it('gives every field of a well-formed row', () => {
    const metadata = metadataOf(1, {
      status: 'answered',
      response: { question_id: 'q2', selected_options: ['q2_opt1'], custom_text: 'x' },
      agent_disconnected: true,
      response_delivery_pending: true,
    });
    expect(readBundleRow(stored({ metadata, updated_at: '2026-03-01T12:00:01.000Z' }))).toEqual({
      id: 'm1',
      pendingId: PENDING_ID,
      sessionId: 's1',
      taskId: 't1',
      turnId: 'turn1',
      type: 'clarification_request',
      status: 'answered',
      questionId: 'q2',
      questionIndex: 1,
      question: {
        id: 'q2',
        title: 'Title q2',
        prompt: 'Prompt q2?',
        options: [
          { option_id: 'q2_opt1', label: 'Label q2.1', description: 'Description q2.1' },
          { option_id: 'q2_opt2', label: 'Label q2.2', description: 'Description q2.2' },
          { option_id: 'q2_opt3', label: 'Label q2.3', description: 'Description q2.3' },
        ],
      },
      context: 'Some context',
      response: { question_id: 'q2', selected_options: ['q2_opt1'], custom_text: 'x' },
      agentDisconnected: true,
      deliveryPending: true,
      createdAt: NOON,
      updatedAt: '2026-03-01T12:00:01.000Z',
      metadata,
    });
  });

  it.each(['', 'x', '{', '{a:1}', 'null', 'true', '5', '"text"', '[]', '[{"pending_id":"p"}]', '{}'])(
    'ODD-ROWS: the metadata %j reads as a question without content',
    (metadata) => {
      expect(readBundleRow(stored({ metadata }))).toMatchObject({
        pendingId: '',
        status: '',
        questionId: '',
        questionIndex: 0,
        question: { id: '', title: '', prompt: '', options: [] },
        context: '',
        response: null,
        agentDisconnected: false,
        deliveryPending: false,
        metadata: {},
      });
    },
  );

  it('ODD-ROWS: reading and showing never throw, whatever the metadata holds', () => {
    const anyValue = fc.oneof(
      fc.jsonValue({ maxDepth: 4 }),
      fc.constantFrom<unknown>(null, 0, 1, '', 'pending', [], {}),
    );
    const options = fc.array(
      fc.oneof(anyValue, fc.record({ option_id: anyValue, label: anyValue, description: anyValue })),
    );
    const question = fc.record({
      id: anyValue,
      title: anyValue,
      prompt: anyValue,
      options: fc.oneof(options, anyValue),
    });
    const response = fc.record({ question_id: anyValue, selected_options: anyValue, custom_text: anyValue });
    const document = fc.record(
      {
        pending_id: anyValue,
        question_id: anyValue,
        question: fc.oneof(question, anyValue),
        question_index: anyValue,
        context: anyValue,
        status: anyValue,
        response: fc.oneof(response, anyValue),
        agent_disconnected: anyValue,
        response_delivery_pending: anyValue,
      },
      { requiredKeys: [] },
    );
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      document.map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), (texts) => {
        const rows = texts.map((metadata, n) => readBundleRow(stored({ id: `m${n}`, metadata })));
        for (const { status, questionId, context, question } of rows) {
          expect([status, questionId, context, question.title, question.prompt].map((value) => typeof value)).toEqual(
            Array(5).fill('string'),
          );
        }
        const shown = JSON.stringify([
          bundleView(rows, NOON),
          bundleStatus(rows),
          winnerResponse(rows, 'p'),
          answerPrompt(rows),
        ]);
        expect(shown).not.toContain('undefined');
      }),
      { numRuns: 500 },
    );
  });

  it('ODD-ROWS: a status nested too deep to write out again is no status we know', () => {
    const deep = '['.repeat(50_000) + ']'.repeat(50_000);
    const { status } = readBundleRow(stored({ metadata: `{"status":${deep}}` }));
    expect(isPendingStatus(status)).toBe(false);
  });

  it('ODD-ROWS: keys that objects inherit are not taken for metadata', () => {
    const read = readBundleRow(stored({ metadata: '{"__proto__":{"status":"answered","question_id":"q9"}}' }));
    expect(read).toMatchObject({ status: '', questionId: '' });
    expect(Object.keys(read.metadata)).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>)['status']).toBeUndefined();
  });

  it.each([
    [undefined, '', true],
    [null, '', true],
    ['', '', true],
    ['pending', 'pending', true],
    ['answered', 'answered', false],
    ['rejected', 'rejected', false],
    ['cancelled', 'cancelled', false],
    ['expired', 'expired', false],
    ['responding', 'responding', false],
    ['Pending', 'Pending', false],
    [' pending', ' pending', false],
    [false, 'false', false],
    [0, '0', false],
    [[], '[]', false],
    [['pending'], '["pending"]', false],
    [{}, '{}', false],
  ])('D4: the status %j reads %j, pending: %j', (status, text, pending) => {
    const read = row(0, { metadata: { status } });
    expect(read.status).toBe(text);
    expect(isPendingStatus(read.status)).toBe(pending);
  });

  it.each([
    [undefined, ''],
    [null, ''],
    [7, ''],
    [['q1'], ''],
    ['', ''],
    ['q1', 'q1'],
  ])('L16: only a flat text counts as question id: %j reads %j, whatever the nested one says', (questionId, text) => {
    const read = row(0, { metadata: { question_id: questionId } });
    expect(read.questionId).toBe(text);
    expect(read.question.id).toBe(text);
  });

  it.each([undefined, null, 'text', 7, true, [], ['x'], {}])('L15: the question %j has empty parts', (question) => {
    expect(row(0, { metadata: { question } }).question).toEqual({ id: 'q1', title: '', prompt: '', options: [] });
  });

  it('L15: one unreadable part does not hide the others', () => {
    expect(row(0, { metadata: { question: { title: 5, prompt: 'P?', options: 'none' } } }).question).toEqual({
      id: 'q1',
      title: '',
      prompt: 'P?',
      options: [],
    });
  });

  it('L15: only options that can be chosen and told apart survive', () => {
    const options = [
      { option_id: 'a', label: 'A', description: 'first' },
      null,
      'b',
      ['c'],
      { label: 'no id' },
      { option_id: '', label: 'empty id' },
      { option_id: 7, label: 'number' },
      { option_id: 'a', label: 'again', description: '' },
      { option_id: 'd', label: 5 },
      { option_id: '__proto__', label: 'P', description: 'D' },
    ];
    expect(row(0, { metadata: { question: { options } } }).question.options).toEqual([
      { option_id: 'a', label: 'A', description: 'first' },
      { option_id: 'd', label: '', description: '' },
      { option_id: '__proto__', label: 'P', description: 'D' },
    ]);
  });

  it.each([
    [true, true],
    ['true', true],
    [1, true],
    ['1', true],
    [false, false],
    ['false', false],
    [0, false],
    ['yes', false],
    [null, false],
    [undefined, false],
    [[true], false],
  ])('the flag %j reads %j, as SQL reads it', (flag, set) => {
    const read = row(0, { metadata: { agent_disconnected: flag, response_delivery_pending: flag } });
    expect(read).toMatchObject({ agentDisconnected: set, deliveryPending: set });
  });

  it.each([
    [null, null],
    ['yes', null],
    [['yes'], null],
    [{}, { question_id: 'q1', selected_options: [], custom_text: '' }],
    [
      { question_id: 5, selected_options: 'q1_opt1', custom_text: null },
      { question_id: 'q1', selected_options: [], custom_text: '' },
    ],
    [
      { question_id: 'q1', selected_options: ['a', 5, null, 'b'], custom_text: 'c', more: 1 },
      { question_id: 'q1', selected_options: ['a', 'b'], custom_text: 'c' },
    ],
  ])('R12: the stored response %j reads as %j', (response, read) => {
    expect(row(0, { metadata: { response } }).response).toEqual(read);
  });
});

describe('whose bundle it is', () => {
  it.each([
    ['t1', 't2', 't1'],
    ['', 't2', 't2'],
    [null, 't2', 't2'],
    ['', '', ''],
    [null, null, ''],
  ])('M5: the row names %j, its session %j: the task is %j', (task_id, session_task_id, taskId) => {
    expect(row(0, { task_id, session_task_id }).taskId).toBe(taskId);
  });

  it('M5: rows that name the same task are that task’s, directly or by their session', () => {
    expect(
      bundleTaskId([row(0, { task_id: 't2', session_task_id: 't2' }), row(1, { task_id: '', session_task_id: 't2' })]),
    ).toBe('t2');
  });

  it('M5a: a bundle without a task, or with rows of different tasks, is nobody’s', () => {
    const none = { task_id: '', session_task_id: '' };
    expect(bundleTaskId([])).toBeUndefined();
    expect(bundleTaskId([row(0, none)])).toBeUndefined();
    expect(bundleTaskId([row(0), row(1, none)])).toBeUndefined();
    expect(bundleTaskId([row(0, none), row(1)])).toBeUndefined();
    expect(bundleTaskId([row(0), row(1, { task_id: 't2' })])).toBeUndefined();
  });
});

describe('order', () => {
  it('D1: a bundle was created when its earliest row was, whatever the order', () => {
    const at = (created_at: string) => row(0, { created_at });
    expect(
      createdAtOf([at('2026-03-01T12:00:00.002Z'), at('2026-03-01T12:00:00.001Z'), at('2026-03-01T12:00:00.003Z')]),
    ).toBe('2026-03-01T12:00:00.001Z');
  });

  it.each([
    [2, 2],
    ['2', 2],
    ['02', 2],
    [-1, -1],
    ['-1', -1],
    [undefined, 0],
    [null, 0],
    ['', 0],
    ['two', 0],
    ['1.5', 0],
    [1.5, 0],
    [1e300, 0],
    ['9'.repeat(400), 0],
    [true, 0],
    [[3], 0],
    [{}, 0],
  ])('D2: the question index %j reads %j', (question_index, index) => {
    expect(row(0, { metadata: { question_index } }).questionIndex).toBe(index);
  });

  it('D2: index comes before creation, creation before id, and an unreadable index is 0', () => {
    const make = (id: string, question_index: unknown, created_at: string) =>
      row(0, { id, created_at, metadata: { question_index } });
    const rows = [
      make('e', 10, '2026-03-01T12:00:00.000Z'),
      make('d', 2, '2026-03-01T12:00:00.000Z'),
      make('b', 0, '2026-03-01T12:00:00.002Z'),
      make('c', 'x', '2026-03-01T12:00:00.002Z'),
      make('z', undefined, '2026-03-01T12:00:00.001Z'),
      make('B', 0, '2026-03-01T12:00:00.002Z'),
    ];
    expect(ids(inD2Order(rows))).toEqual(['z', 'B', 'b', 'c', 'd', 'e']);
  });

  it('D2: ids compare bytewise, as both databases order them', () => {
    // In UTF-16 the order would be the other way round.
    expect(ids(inD2Order([row(0, { id: '\u{1f600}' }), row(0, { id: '\uffee' })]))).toEqual(['\uffee', '\u{1f600}']);
  });

  it('D2: the order does not depend on the order in which rows were read, and the rows are left as they were', () => {
    const rows = [0, 1, 2, 3, 4, 5].map((n) =>
      row(n, {
        id: `m${n % 3}${n}`,
        metadata: { question_index: n % 2 },
        created_at: n < 3 ? NOON : '2026-03-01T11:00:00.000Z',
      }),
    );
    const ordered = ids(inD2Order(rows));
    fc.assert(
      fc.property(fc.shuffledSubarray(rows, { minLength: rows.length }), (shuffled) => {
        const before = ids(shuffled);
        expect(ids(inD2Order(shuffled))).toEqual(ordered);
        expect(ids(shuffled)).toEqual(before);
      }),
    );
  });
});

describe('what a bundle was resolved to', () => {
  const answered = (n: number, updated_at = NOON) =>
    row(n, { updated_at, metadata: { status: 'answered', response: answer(n, [n + 1], `text ${n}`) } });
  const rejected = (n: number, updated_at = NOON) => row(n, { updated_at, metadata: { status: 'rejected' } });

  it.each(['pending', '', 'cancelled', 'expired', 'responding', 'other'])(
    'R2b: rows that are %j have no winner',
    (status) => {
      expect(
        winnerResponse([row(0, { metadata: { status } }), row(1, { metadata: { status } })], PENDING_ID),
      ).toBeUndefined();
    },
  );

  it('R2b: answers are every stored response in D2 order', () => {
    expect(winnerResponse([answered(1), answered(0)], PENDING_ID)).toEqual({
      status: 'answered',
      response: {
        pending_id: PENDING_ID,
        answers: [
          { question_id: 'q1', selected_options: ['q1_opt1'], custom_text: 'text 0' },
          { question_id: 'q2', selected_options: ['q2_opt2'], custom_text: 'text 1' },
        ],
        rejected: false,
        reject_reason: '',
        responded_at: NOON,
      },
    });
  });

  it('R2b: a rejection has no answers and no reason on a replay; its maker’s reason can be given back', () => {
    const response = { pending_id: PENDING_ID, answers: [], rejected: true, reject_reason: '', responded_at: NOON };
    expect(winnerResponse([rejected(0), rejected(1)], PENDING_ID)).toEqual({ status: 'rejected', response });
    expect(winnerResponse([rejected(0)], PENDING_ID, 'too early')).toEqual({
      status: 'rejected',
      response: { ...response, reject_reason: 'too early' },
    });
  });

  it('R2b: of a mixed bundle the first resolved row in D2 order decides, whatever precedes it', () => {
    expect(winnerResponse([answered(1), rejected(0)], PENDING_ID)).toMatchObject({
      status: 'rejected',
      response: { rejected: true, answers: [{ question_id: 'q2' }] },
    });
    expect(winnerResponse([rejected(1), answered(0)], PENDING_ID)).toMatchObject({
      status: 'answered',
      response: { rejected: false, answers: [{ question_id: 'q1' }] },
    });
    expect(winnerResponse([rejected(1), row(0, { metadata: { status: 'expired' } })], PENDING_ID)?.status).toBe(
      'rejected',
    );
    expect(winnerResponse([rejected(1), row(0)], PENDING_ID)?.status).toBe('rejected');
  });

  it('R2b: responded_at is the latest change of an answered or rejected row, not of its siblings', () => {
    const rows = [
      answered(0, '2026-03-01T12:00:05.000Z'),
      rejected(1, '2026-03-01T12:00:07.000Z'),
      row(2, { updated_at: '2026-03-01T12:00:09.000Z', metadata: { status: 'expired' } }),
    ];
    expect(winnerResponse(rows, PENDING_ID)?.response.responded_at).toBe('2026-03-01T12:00:07.000Z');
  });

  it('R12: the response has exactly its fields, in one order, so that equal responses are equal bytes', () => {
    const first = JSON.stringify(winnerResponse([answered(0), answered(1)], PENDING_ID));
    expect(JSON.stringify(winnerResponse([answered(1), answered(0)], PENDING_ID))).toBe(first);
    expect(first).toBe(
      '{"status":"answered","response":{"pending_id":"5f0c7a52-1f1b-4f9e-8a53-0d4c0f7f6c11","answers":' +
        '[{"question_id":"q1","selected_options":["q1_opt1"],"custom_text":"text 0"},' +
        '{"question_id":"q2","selected_options":["q2_opt2"],"custom_text":"text 1"}],' +
        '"rejected":false,"reject_reason":"","responded_at":"2026-03-01T12:00:00.000Z"}}',
    );
  });
});
