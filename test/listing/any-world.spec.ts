import { beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Deadline } from '../../src/common/deadline.js';
import { NotFoundError } from '../../src/common/domain-error.js';
import type { BundleView } from '../../src/clarification/domain/views.js';
import { UNSCOPED, type Caller } from '../../src/identity/caller.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { plantRows, type PlantedRows } from '../support/plant-rows.js';
import { servicesOn, type Services } from '../support/services.js';
import { anyWorld, INSTANTS, STATIC, WORKSPACE_IDS } from './any-world.js';
import { bundlesOf, expectedListing, isActive, type ListingFilter } from './expected-listing.js';

const within = () => Deadline.after(20_000);
const userNamed = (userId: string): Caller => ({ kind: 'user', userId, userName: userId, tokenId: userId });
const CALLERS: readonly Caller[] = [userNamed('alice'), userNamed('bob'), userNamed('carol'), UNSCOPED];

const optionally = <T>(values: readonly T[]) => fc.option(fc.constantFrom(...values), { nil: undefined, freq: 2 });
const anyRequest = fc.record({
  caller: fc.constantFrom(...CALLERS),
  workspaceId: optionally(WORKSPACE_IDS),
  createdSince: optionally(INSTANTS),
  limit: fc.integer({ min: 1, max: 4 }),
});

describeEachEngine('the listing of any rows', (engine) => {
  let database: TestDatabase;
  let services: Services;

  beforeAll(async () => {
    database = await engine.createDatabase();
    services = servicesOn(database);
    await plantRows(database, STATIC);
  });

  async function plant(world: PlantedRows): Promise<void> {
    await database.sql('DELETE FROM task_session_messages');
    await plantRows(database, { messages: world.messages });
  }

  async function allPages(caller: Caller, filter: ListingFilter, limit: number): Promise<BundleView[]> {
    const bundles: BundleView[] = [];
    for (let cursor = ''; ;) {
      const page = await services.listing.list(
        caller,
        {
          limit,
          cursor,
          ...(filter.workspaceId !== undefined && { workspace_id: filter.workspaceId }),
          ...(filter.createdSince !== undefined && { created_since: filter.createdSince }),
        },
        within(),
      );
      expect(page.count).toBe(page.bundles.length);
      bundles.push(...page.bundles);
      cursor = page.next_cursor;
      if (cursor === '') return bundles;
      expect(page.count).toBe(limit);
    }
  }

  it('L1, L1c, L6, L7, L8, L9, L11, L12, L14, L16, D1, D2, M5, M5a, ODD-ROWS: full pages of any size hold exactly what the rules say, each bundle once, in order', async () => {
    const property = fc.asyncProperty(
      anyWorld(),
      fc.array(anyRequest, { minLength: 4, maxLength: 4 }),
      async (world, requests) => {
        await plant(world);
        for (const { caller, limit, ...filter } of requests) {
          const listed = await allPages(caller, filter, limit);
          const seen = listed.map((bundle) => ({
            pendingId: bundle.pending_id,
            createdAt: bundle.created_at,
            sessionId: bundle.session_id,
            rowIds: bundle.questions.map((question) => question.title),
          }));
          expect(seen).toEqual(expectedListing(world, caller, filter));
        }
      },
    );
    await fc.assert(property, { numRuns: 100 });
  }, 120_000);

  it('L1, D6: whatever was written into bundle_created_at hides no bundle and shows none twice', async () => {
    const property = fc.asyncProperty(
      anyWorld({ anyKeys: true }),
      fc.integer({ min: 1, max: 3 }),
      async (world, limit) => {
        await plant(world);
        const listed = (await allPages(UNSCOPED, {}, limit)).map((bundle) => [bundle.pending_id, bundle.created_at]);
        const expected = expectedListing(world, UNSCOPED).map((bundle) => [bundle.pendingId, bundle.createdAt]);
        expect(listed.sort()).toEqual(expected.sort());
      },
    );
    await fc.assert(property, { numRuns: 40 });
  }, 120_000);

  it('L1c, D4, A4: what is listed is what is active and what authorization lets the caller read', async () => {
    const property = fc.asyncProperty(anyWorld(), fc.constantFrom(...CALLERS), async (world, caller) => {
      await plant(world);
      const listed = new Set((await allPages(caller, {}, 200)).map((bundle) => bundle.pending_id));
      const listable = new Set(expectedListing(world, UNSCOPED).map((bundle) => bundle.pendingId));
      for (const { pendingId, rows } of bundlesOf(world)) {
        const read = await services.requests.get(caller, pendingId, within()).catch((error: unknown) => {
          if (error instanceof NotFoundError) return undefined;
          throw error;
        });
        if (read !== undefined) expect([pendingId, read.active]).toEqual([pendingId, isActive(world, rows)]);
        expect([pendingId, listed.has(pendingId)]).toEqual([pendingId, read !== undefined && listable.has(pendingId)]);
      }
    });
    await fc.assert(property, { numRuns: 40 });
  }, 120_000);
});
