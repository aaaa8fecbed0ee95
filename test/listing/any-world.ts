import fc from 'fast-check';
import type { Instant } from '../../src/common/clock.js';
import type { PlantedMessage, PlantedRows } from '../support/plant-rows.js';

/** Everything but the messages, which is the same in every world. */
export const STATIC: Omit<PlantedRows, 'messages'> = {
  workspaces: [
    { id: 'of-alice', ownerId: 'alice' },
    { id: 'of-bob', ownerId: 'bob' },
    { id: 'unowned', ownerId: '' },
  ],
  tasks: [
    { id: 'in-none', workspaceId: '' },
    { id: 'in-dangling', workspaceId: 'dangling' },
    { id: 'in-alice', workspaceId: 'of-alice' },
    { id: 'in-bob', workspaceId: 'of-bob' },
    { id: 'in-unowned', workspaceId: 'unowned' },
  ],
  sessions: [
    { id: 's-none', taskId: 'in-none', state: 'running' },
    { id: 's-dangling', taskId: 'in-dangling', state: 'waiting_for_input' },
    { id: 's-alice', taskId: 'in-alice', state: 'created' },
    { id: 's-bob', taskId: 'in-bob', state: 'running' },
    { id: 's-unowned', taskId: 'in-unowned', state: 'running' },
    { id: 's-ended', taskId: 'in-alice', state: 'failed' },
    { id: 's-reserved', taskId: 'in-alice', state: 'running' },
  ],
  turns: [
    ...['s-none', 's-dangling', 's-alice', 's-bob', 's-unowned', 's-ended', 's-reserved'].flatMap((sessionId) => [
      { id: `${sessionId}-old`, sessionId, startedAt: '2026-01-01T00:00:00.000Z' },
      { id: `${sessionId}-now`, sessionId, startedAt: '2026-01-01T00:00:00.001Z' },
    ]),
    // Counts only once something refers to it.
    {
      id: 's-reserved-next',
      sessionId: 's-reserved',
      startedAt: '2026-01-01T00:00:00.002Z',
      metadata: '{"prompt_dispatch_pending":"1"}',
    },
  ],
};

export const WORKSPACE_IDS = [...STATIC.workspaces.map(({ id }) => id), 'dangling', 'none-of-this-name'];

/** Few and close together, so that equal ones are common. */
export const INSTANTS: readonly Instant[] = [
  '2026-01-01T00:00:00.000Z',
  '2026-01-01T00:00:00.001Z',
  '2026-01-01T00:00:01.000Z',
  '2026-02-01T00:00:00.000Z',
];

/** Names that a language orders otherwise than their bytes do. */
export const PENDING_IDS = ['a', 'B', 'b', '_', '-', 'Z', 'aB', 'a-b', 'ä', 'é', '10', '9', '😀', 'x'.repeat(128)];

const usually = <T>(common: readonly T[], rare: readonly T[]) =>
  fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...common) }, { weight: 1, arbitrary: fc.constantFrom(...rare) });

const anyStatus = usually<unknown>(
  ['pending', 'pending', 'answered'],
  ['', undefined, null, 'rejected', 'cancelled', 'odd', 0, true],
);

const PENDING: ReadonlySet<unknown> = new Set(['pending', '', undefined, null]);

/** What a row of an odd bundle has that others do not. */
const anyOddity = fc.record({
  questionId: usually<unknown>(['q1', 'q2'], ['', undefined, 7, null]),
  index: fc.constantFrom<unknown>(0, 1, undefined, 'many'),
  taskId: usually<string | null>(['', null], ['in-alice', 'in-bob', 'nowhere']),
  type: usually(['clarification_request'], ['message']),
  elsewhere: usually([undefined], ['s-alice', 's-none']),
});

const anyRow = fc.record({
  status: anyStatus,
  createdAt: fc.constantFrom(...INSTANTS),
  anyKey: fc.constantFrom(null, ...INSTANTS),
  oddity: anyOddity,
});

const anyBundle = fc.record({
  pendingId: usually<unknown>(PENDING_IDS, ['', 5, 9, true, undefined, ['a'], { a: 1 }, 1.5, 1e300, 'x'.repeat(129)]),
  session: usually(
    STATIC.sessions.map(({ id }) => id).filter((id) => id !== 's-ended'),
    ['s-ended'],
  ),
  /** `next` is the reserved turn of the session that has one. */
  turn: usually(['now'], ['old', 'next']),
  /** Its rows have that time, as the product writes them. */
  isOfOneTime: fc.boolean(),
  /** Which rows say so in `bundle_created_at`. */
  keyed: fc.constantFrom('all', 'all', 'pending', 'none'),
  isOdd: usually([false], [true, true, true]),
  rows: fc.array(anyRow, { minLength: 1, maxLength: 4 }),
});

/** When the product would have written the bundle of each name. */
const anyTimes = fc.array(fc.constantFrom(...INSTANTS), {
  minLength: PENDING_IDS.length,
  maxLength: PENDING_IDS.length,
});

/**
 * Workspaces, tasks and sessions of every kind with bundles in them that differ in everything that the listing looks
 * at. `bundle_created_at` is what the product wrote, or missing in the whole bundle or in rows that were added to it as
 * resolved ones; with `anyKeys` it is whatever.
 */
export function anyWorld({ anyKeys = false } = {}): fc.Arbitrary<PlantedRows> {
  const range = { minLength: 4, maxLength: 12 };
  const bundles = anyKeys
    ? fc.array(anyBundle, range)
    : fc.uniqueArray(anyBundle, { ...range, selector: ({ pendingId }) => JSON.stringify(pendingId) });
  return fc.tuple(bundles, anyTimes).map(([planted, times]) => ({
    ...STATIC,
    messages: planted.flatMap((bundle, number) =>
      bundle.rows.map((row, index): PlantedMessage => {
        const {
          questionId,
          index: questionIndex,
          taskId,
          type,
          elsewhere,
        } = bundle.isOdd
          ? row.oddity
          : { questionId: `q${index}`, index, taskId: '', type: 'clarification_request', elsewhere: undefined };
        const session = elsewhere ?? bundle.session;
        const askedAt = times[PENDING_IDS.indexOf(bundle.pendingId as string)] ?? INSTANTS[0] ?? '';
        const isKeyed = bundle.keyed === 'all' || (bundle.keyed === 'pending' && PENDING.has(row.status));
        // Ids do not follow times, and a language would order them otherwise than their bytes do.
        const id = `${'mM'[index % 2]}-${number}-${index}`;
        return {
          id,
          sessionId: session,
          turnId: `${session}-${bundle.turn === 'next' && session !== 's-reserved' ? 'now' : bundle.turn}`,
          taskId,
          type,
          metadata: JSON.stringify({
            pending_id: bundle.pendingId,
            question_id: questionId,
            question: { title: id },
            question_index: questionIndex,
            status: row.status,
          }),
          createdAt: bundle.isOfOneTime ? askedAt : row.createdAt,
          bundleCreatedAt: anyKeys ? row.anyKey : isKeyed ? askedAt : null,
        };
      }),
    ),
  }));
}
