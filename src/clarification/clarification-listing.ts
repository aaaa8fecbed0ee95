import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import type { Deadline } from '../common/deadline.js';
import { usableId } from '../common/ids.js';
import { decodeCursor, encodeCursor } from '../common/page-cursor.js';
import type { Caller } from '../identity/caller.js';
import { Reader } from '../persistence/unit-of-work.js';
import { refuseAgents } from '../tasks/authorization/task-access.js';
import { given, pageSize } from '../tasks/page.js';
import { parseCreatedSince } from './domain/created-since.js';
import { bundleView, type BundleView } from './domain/views.js';
import { findBundles } from './persistence/bundles.repository.js';
import { listActiveBundles } from './persistence/list-active-bundles.query.js';

export interface ListBundlesInput {
  readonly workspace_id?: string;
  readonly created_since?: string;
  readonly cursor?: string;
  readonly limit?: number;
}

export interface BundlePage {
  readonly bundles: readonly BundleView[];
  readonly count: number;
  readonly next_cursor: string;
}

/** L: what a caller may answer now, oldest first, from the rows. Two statements, however long the page. */
@Injectable()
export class ClarificationListing {
  constructor(
    private readonly reader: Reader,
    private readonly clock: Clock,
  ) {}

  /** @throws ForbiddenError for agents, ValidationError naming created_since or cursor */
  async list(caller: Caller, input: ListBundlesInput, deadline: Deadline): Promise<BundlePage> {
    refuseAgents(caller);
    const workspaceId = given(input.workspace_id);
    const createdSince = given(input.created_since);
    const cursor = given(input.cursor);
    const limit = pageSize(input.limit);
    const sql = this.reader.within(deadline);
    const found = await listActiveBundles(sql, caller, {
      limit,
      ...(workspaceId !== undefined && { workspaceId: usableId(workspaceId) }),
      ...(createdSince !== undefined && { createdSince: parseCreatedSince(createdSince) }),
      ...(cursor !== undefined && { after: decodeCursor(cursor) }),
    });
    const page = found.slice(0, limit);
    const rows = await findBundles(
      sql,
      page.map((key) => key.pending_id),
    );
    const now = this.clock.now();
    // A bundle whose task was deleted between the two statements is gone; the cursor still passes it.
    const bundles = page.flatMap((key) => {
      const bundle = rows.get(key.pending_id);
      return bundle === undefined ? [] : [bundleView(bundle, now)];
    });
    const last = found.length > limit ? page.at(-1) : undefined;
    return {
      bundles,
      count: bundles.length,
      next_cursor: last === undefined ? '' : encodeCursor({ createdAt: last.created_at, id: last.pending_id }),
    };
  }
}
