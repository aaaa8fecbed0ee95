import { describe, expect, it } from '@jest/globals';
import { readBundleRow } from '../../../src/clarification/domain/bundle.js';
import {
  ageSeconds,
  bundleStatus,
  bundleView,
  contextOf,
  questionViews,
} from '../../../src/clarification/domain/views.js';
import { bundle, NOON, PENDING_ID, row, stored } from './rows.js';

const options = (id: string) =>
  [1, 2, 3].map((m) => ({
    option_id: `${id}_opt${m}`,
    label: `Label ${id}.${m}`,
    description: `Description ${id}.${m}`,
  }));

describe('a bundle as it is listed', () => {
  it('L3 L4: has these fields and no other, whatever order its rows were read in', () => {
    const expected = {
      pending_id: PENDING_ID,
      task_id: 't1',
      session_id: 's1',
      created_at: '2026-03-01T12:00:00.000Z',
      age_seconds: 61,
      context: 'Some context',
      questions: [
        { question_id: 'q1', title: 'Title q1', prompt: 'Prompt q1?', status: 'pending', options: options('q1') },
        { question_id: 'q2', title: 'Title q2', prompt: 'Prompt q2?', status: 'pending', options: options('q2') },
      ],
    };
    const now = '2026-03-01T12:01:01.999Z';
    expect(bundleView(bundle(), now)).toEqual(expected);
    expect(bundleView(bundle().reverse(), now)).toEqual(expected);
  });

  it('D1: its creation is its earliest row’s', () => {
    const rows = [row(0, { created_at: '2026-03-01T12:00:00.500Z' }), row(1)];
    expect(bundleView(rows, '2026-03-01T12:00:01.000Z')).toMatchObject({ created_at: NOON, age_seconds: 1 });
  });

  it('L4a: everything unknown is empty text or an empty list, never null and never missing', () => {
    const odd = readBundleRow(stored({ task_id: null, session_task_id: null, metadata: { question: [], context: 7 } }));
    expect(JSON.parse(JSON.stringify(bundleView([odd], NOON)))).toEqual({
      pending_id: '',
      task_id: '',
      session_id: 's1',
      created_at: NOON,
      age_seconds: 0,
      context: '',
      questions: [{ question_id: '', title: '', prompt: '', status: 'pending', options: [] }],
    });
  });

  it('L12 L4a: each question has its own status, an absent one reads pending', () => {
    const statuses = ['answered', undefined, '', 'pending', 'expired', 'other'];
    const rows = statuses.map((status, n) => row(n, { metadata: { status } }));
    expect(questionViews(rows).map(({ status }) => status)).toEqual([
      'answered',
      'pending',
      'pending',
      'pending',
      'expired',
      'other',
    ]);
  });

  it('L15: an unreadable question is there, with empty parts', () => {
    expect(questionViews([row(0, { metadata: { question: 'x' } })])).toEqual([
      { question_id: 'q1', title: '', prompt: '', status: 'pending', options: [] },
    ]);
  });

  it('L4a: the context is the first that can be read', () => {
    expect(contextOf([row(1, { metadata: { context: 'second' } }), row(0, { metadata: { context: null } })])).toBe(
      'second',
    );
    expect(contextOf([row(1, { metadata: { context: 'second' } }), row(0)])).toBe('Some context');
  });

  it.each([
    ['2026-03-01T12:00:00.000Z', 0],
    ['2026-03-01T12:00:00.999Z', 0],
    ['2026-03-01T12:00:01.000Z', 1],
    ['2026-03-02T12:00:00.000Z', 86_400],
    ['2026-03-01T11:59:59.999Z', 0],
    ['2020-01-01T00:00:00.000Z', 0],
  ])('D7: at %s the age is %d whole seconds, never below 0', (now, age) => {
    expect(ageSeconds(now, NOON)).toBe(age);
    expect(Object.is(ageSeconds(now, NOON), -0)).toBe(false);
  });
});

describe('the status of a bundle', () => {
  it.each<[(string | undefined)[], string]>([
    [['answered', 'pending'], 'pending'],
    [['rejected', undefined], 'pending'],
    [['', 'expired'], 'pending'],
    [['answered', 'answered'], 'answered'],
    [['rejected', 'answered'], 'rejected'],
    [['expired', 'answered'], 'answered'],
    [['expired', 'cancelled'], 'expired'],
    [['cancelled', 'expired'], 'cancelled'],
    [['other', 'expired'], 'other'],
  ])('DETAIL: of rows that are %j is %s', (statuses, status) => {
    const rows = statuses.map((each, n) => row(n, { metadata: { status: each } }));
    expect(bundleStatus(rows)).toBe(status);
    expect(bundleStatus(rows.reverse())).toBe(status);
  });
});
