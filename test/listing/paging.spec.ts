import { beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Deadline } from '../../src/common/deadline.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { PLANTED_AT, plantRows } from '../support/plant-rows.js';
import { servicesOn, type Services } from '../support/services.js';
import { INSTANTS, PENDING_IDS } from './any-world.js';

const within = () => Deadline.after(20_000);

interface Bundle {
  readonly id: string;
  readonly createdAt: string;
  readonly rows: number;
}

const anyBundles = fc.uniqueArray(
  fc.record({
    id: fc.constantFrom(...PENDING_IDS),
    createdAt: fc.constantFrom(...INSTANTS),
    rows: fc.integer({ min: 1, max: 3 }),
  }),
  { minLength: 3, maxLength: PENDING_IDS.length, selector: (bundle) => bundle.id },
);

/** What happens before a page is asked for: bundles (by their place among all of them) end, or are asked. */
const anyChanges = fc.array(
  fc.record({ kind: fc.constantFrom('end', 'ask'), which: fc.nat({ max: PENDING_IDS.length - 1 }) }),
  { maxLength: 3 },
);

const isAfter = (bundle: Bundle, position: Bundle) =>
  bundle.createdAt > position.createdAt ||
  (bundle.createdAt === position.createdAt && Buffer.compare(Buffer.from(bundle.id), Buffer.from(position.id)) > 0);

describeEachEngine('paging through the listing', (engine) => {
  let database: TestDatabase;
  let services: Services;

  beforeAll(async () => {
    database = await engine.createDatabase();
    services = servicesOn(database);
    await plantRows(database, {
      tasks: [{ id: 't', workspaceId: '' }],
      sessions: [{ id: 's', taskId: 't', state: 'running' }],
      turns: [{ id: 'n', sessionId: 's', startedAt: PLANTED_AT }],
    });
  });

  const ask = (bundles: readonly Bundle[]) =>
    plantRows(database, {
      messages: bundles.flatMap((bundle) =>
        Array.from({ length: bundle.rows }, (_, index) => ({
          id: `${bundle.id}/${index}`,
          sessionId: 's',
          turnId: 'n',
          taskId: 't',
          type: 'clarification_request',
          metadata: JSON.stringify({ pending_id: bundle.id, question_id: `q${index}`, question_index: index }),
          createdAt: bundle.createdAt,
          bundleCreatedAt: bundle.createdAt,
        })),
      ),
    });

  const end = (bundle: Bundle) =>
    database.sql(
      `UPDATE task_session_messages SET metadata = $2 WHERE ${engine.dialect.metadataText('metadata', 'pending_id')} = $1`,
      [bundle.id, JSON.stringify({ pending_id: bundle.id, question_id: 'q', status: 'cancelled' })],
    );

  it('D6, L6, L9: each page is the next bundles by (created_at, pending_id) that are open now, whatever ended or was asked between pages', async () => {
    const property = fc.asyncProperty(
      anyBundles,
      fc.nat({ max: 6 }),
      fc.integer({ min: 1, max: 4 }),
      fc.array(anyChanges, { minLength: 4, maxLength: 4 }),
      async (all, later, limit, changes) => {
        await database.sql('DELETE FROM task_session_messages');
        const open = new Set(all.slice(later));
        const unasked = new Set(all.slice(0, later));
        await ask([...open]);
        let cursor = '';
        let last: Bundle | undefined;
        for (let page = 0; ; page += 1) {
          const listed = await services.listing.list(UNSCOPED, { limit, cursor }, within());
          const expected = [...open]
            .filter((bundle) => last === undefined || isAfter(bundle, last))
            .sort((a, b) => (isAfter(a, b) ? 1 : -1));
          expect(listed.bundles.map((bundle) => [bundle.pending_id, bundle.questions.length])).toEqual(
            expected.slice(0, limit).map((bundle) => [bundle.id, bundle.rows]),
          );
          expect(listed.next_cursor === '').toBe(expected.length <= limit);
          if (listed.next_cursor === '') return;
          cursor = listed.next_cursor;
          last = expected[limit - 1];
          for (const { kind, which } of changes[page] ?? []) {
            const bundle = all[which % all.length] as Bundle;
            if (kind === 'end' && open.delete(bundle)) await end(bundle);
            if (kind === 'ask' && unasked.delete(bundle)) {
              open.add(bundle);
              await ask([bundle]);
            }
          }
        }
      },
    );
    await fc.assert(property, { numRuns: 60 });
  }, 120_000);

  it('D6: what is asked while the clock stands back is not returned to the holder of a later cursor, and is to everybody else', async () => {
    await database.sql('DELETE FROM task_session_messages');
    await ask([
      { id: 'first', createdAt: '2026-01-02T00:00:00.000Z', rows: 1 },
      { id: 'second', createdAt: '2026-01-03T00:00:00.000Z', rows: 1 },
    ]);
    const { next_cursor: cursor } = await services.listing.list(UNSCOPED, { limit: 1 }, within());
    await ask([{ id: 'before', createdAt: '2026-01-01T23:59:59.999Z', rows: 1 }]);
    const idsOf = async (input: object) =>
      (await services.listing.list(UNSCOPED, input, within())).bundles.map((bundle) => bundle.pending_id);
    expect(await idsOf({ cursor })).toEqual(['second']);
    expect(await idsOf({})).toEqual(['before', 'first', 'second']);
  });
});
