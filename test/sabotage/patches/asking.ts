import type { Patch } from '../patch.js';

const file = 'src/clarification/domain/new-bundle.ts';
const spec = 'test/unit/clarification/new-bundle.spec.ts';

/** What a bundle may ask, and the values that pages are asked for with. */
export const ASKING: readonly Patch[] = [
  {
    rule: 'CREATE-IDS',
    says: 'Ids that an agent’s result uses itself are accepted.',
    file,
    find: 'if (RESERVED_QUESTION_IDS.includes(id))',
    replace: 'if (RESERVED_QUESTION_IDS.includes(id) && input.id === undefined)',
    spec,
  },
  {
    rule: 'CREATE-DEDUP',
    says: 'The order of the questions does not count when they are compared.',
    file,
    find: 'fingerprint(inD2Order(rows).map((row) => row.question)) === fingerprint(questions)',
    replace:
      '[...rows].map((row) => fingerprint([row.question])).sort().join() === questions.map((one) => fingerprint([one])).sort().join()',
    spec,
  },
  {
    rule: 'L8',
    says: 'A bound finer than a millisecond is cut off, so that a row from before it is listed.',
    file: 'src/clarification/domain/created-since.ts',
    find: '(/[1-9]/.test(fraction.slice(3)) ? 1 : 0)',
    replace: '0',
    spec: 'test/unit/clarification/created-since.spec.ts',
  },
  {
    rule: 'L13',
    says: 'A day that its month does not have is moved into the next one.',
    file: 'src/clarification/domain/created-since.ts',
    find: 'return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date) ? time : undefined;',
    replace: 'return Number.isNaN(time) ? undefined : time;',
    spec: 'test/unit/clarification/created-since.spec.ts',
  },
  {
    rule: 'L13',
    says: 'A cursor of another version is read as far as it can be.',
    file: 'src/common/page-cursor.ts',
    find: 'if (position === undefined || encodeCursor(position) !== text) {',
    replace: 'if (position === undefined) {',
    spec: 'test/unit/page-cursor.spec.ts',
  },
];
