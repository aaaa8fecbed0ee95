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
import type { ListBundlesInput } from './inputs.js';
import { listActiveBundles } from './persistence/list-active-bundles.query.js';

export interface BundlePage {
  readonly bundles: readonly BundleView[];
  readonly count: number;
  readonly next_cursor: string;
}

/** L: what a caller may answer now, oldest first, from the rows. One statement, however long the page. */
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
    const found = await listActiveBundles(this.reader.within(deadline), caller, {
      limit,
      ...(workspaceId !== undefined && { workspaceId: usableId(workspaceId) }),
      ...(createdSince !== undefined && { createdSince: parseCreatedSince(createdSince) }),
      ...(cursor !== undefined && { after: decodeCursor(cursor) }),
    });
    const now = this.clock.now();
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return {
      bundles: page.map((bundle) => bundleView(bundle.rows, now)),
      count: page.length,
      next_cursor: last === undefined ? '' : encodeCursor(last),
    };
  }
}
