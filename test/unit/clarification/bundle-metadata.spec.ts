import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { composeMetadata, newMetadata, type BundleChange } from '../../../src/clarification/domain/bundle-metadata.js';
import { readBundleRow } from '../../../src/clarification/domain/bundle.js';
import { answer, metadataOf, PENDING_ID, row, stored } from './rows.js';

const RESPONSE = answer(0, [2], 'text');

const KNOWN = [
  'pending_id',
  'question_id',
  'question',
  'question_index',
  'question_total',
  'context',
  'status',
  'response',
  'agent_disconnected',
  'response_delivery_pending',
];

/** Every move with the keys it sets (undefined: removes); all others must stay. */
const CHANGES: [BundleChange, Record<string, unknown>][] = [
  [
    { kind: 'answered', response: RESPONSE },
    { status: 'answered', response: RESPONSE, response_delivery_pending: true },
  ],
  [{ kind: 'rejected' }, { status: 'rejected', response: undefined, response_delivery_pending: true }],
  [{ kind: 'settled' }, { response_delivery_pending: undefined }],
  [{ kind: 'restored' }, { status: 'pending', response: undefined, response_delivery_pending: undefined }],
  [{ kind: 'cancelled' }, { status: 'cancelled' }],
  [{ kind: 'expired' }, { status: 'expired' }],
  [{ kind: 'detached' }, { agent_disconnected: true }],
  [{ kind: 'attached' }, { agent_disconnected: undefined }],
  [{ kind: 'intent' }, { response_delivery_pending: true }],
];

describe('the one mapper of metadata', () => {
  it('META-KEYS: a new question has exactly these keys in this order, without a nested key too many', () => {
    const option = { option_id: 'q1_opt1', label: 'A', description: '', extra: 1 };
    const question = { id: 'q1', title: 'T', prompt: 'P?', options: [option], extra: 2 };
    expect(newMetadata({ pendingId: PENDING_ID, question, index: 0, total: 1, context: 'C' })).toBe(
      `{"pending_id":"${PENDING_ID}","question_id":"q1",` +
        '"question":{"id":"q1","title":"T","prompt":"P?","options":[{"option_id":"q1_opt1","label":"A","description":""}]},' +
        '"question_index":0,"question_total":1,"context":"C","status":"pending"}',
    );
  });

  it('META-KEYS: a new question reads back as it was asked', () => {
    const { question } = row(0);
    const text = newMetadata({ pendingId: PENDING_ID, question, index: 3, total: 4, context: 'C' });
    expect(readBundleRow(stored({ metadata: text }))).toMatchObject({
      pendingId: PENDING_ID,
      questionId: 'q1',
      question,
      questionIndex: 3,
      context: 'C',
      status: 'pending',
      response: null,
      deliveryPending: false,
    });
  });

  it.each(CHANGES)('META-KEYS: $kind changes its own keys and keeps the rest', (change, patch) => {
    for (const before of [
      metadataOf(0),
      metadataOf(0, { status: undefined }),
      metadataOf(0, {
        status: 'answered',
        response: answer(0, [1], 'old'),
        agent_disconnected: true,
        response_delivery_pending: true,
      }),
    ]) {
      const read = readBundleRow(stored({ metadata: before }));
      const expected: unknown = JSON.parse(JSON.stringify({ ...before, ...patch }));
      expect(JSON.parse(composeMetadata(read, change))).toEqual(expected);
    }
  });

  it.each(CHANGES)(
    'META-KEYS: $kind writes the known keys in their order, unknown ones after them as read',
    (change) => {
      const { context, ...rest } = metadataOf(0);
      const shuffled = { zeta: [1, { a: null }], ...rest, alpha: 'x', context };
      const keys = Object.keys(
        JSON.parse(composeMetadata(readBundleRow(stored({ metadata: shuffled })), change)) as object,
      );
      const known = keys.filter((key) => KNOWN.includes(key));
      expect(known).toEqual(KNOWN.filter((key) => known.includes(key)));
      expect(keys.slice(known.length)).toEqual(['zeta', 'alpha']);
    },
  );

  it('META-KEYS: only the fields of an answer are stored, in their order', () => {
    const response = { custom_text: 'c', extra: 1, selected_options: ['q1_opt1'], question_id: 'q1' };
    expect(composeMetadata(row(0), { kind: 'answered', response })).toContain(
      '"response":{"question_id":"q1","selected_options":["q1_opt1"],"custom_text":"c"},',
    );
  });

  it('ODD-ROWS: hostile and number-like keys are kept in their place', () => {
    const metadata = '{"__proto__":{"a":1},"7":true,"pending_id":"p","constructor":2,"status":null}';
    const written = composeMetadata(readBundleRow(stored({ metadata })), { kind: 'expired' });
    expect(written).toBe('{"pending_id":"p","status":"expired","7":true,"__proto__":{"a":1},"constructor":2}');
  });

  it('restoring an answered row gives back the row that was claimed', () => {
    const before = composeMetadata(row(0, { metadata: { agent_disconnected: true } }), { kind: 'attached' });
    const claimed = composeMetadata(readBundleRow(stored({ metadata: before })), {
      kind: 'answered',
      response: RESPONSE,
    });
    expect(composeMetadata(readBundleRow(stored({ metadata: claimed })), { kind: 'restored' })).toBe(before);
  });

  it('META-KEYS: doing a change twice writes the same bytes as doing it once', () => {
    const documents = fc.dictionary(fc.oneof(fc.constantFrom(...KNOWN), fc.string()), fc.jsonValue({ maxDepth: 2 }));
    fc.assert(
      fc.property(documents, fc.constantFrom(...CHANGES.map(([change]) => change)), (document, change) => {
        const once = composeMetadata(readBundleRow(stored({ metadata: JSON.stringify(document) })), change);
        expect(composeMetadata(readBundleRow(stored({ metadata: once })), change)).toBe(once);
      }),
    );
  });
});
