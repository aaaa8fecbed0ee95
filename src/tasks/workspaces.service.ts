import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import type { Deadline } from '../common/deadline.js';
import { newRowId } from '../common/row-id.js';
import type { Caller } from '../identity/caller.js';
import { Reader, UnitOfWork } from '../persistence/unit-of-work.js';
import type { CreateWorkspaceInput } from './inputs.js';
import { insertWorkspace, listVisibleWorkspaces } from './persistence/workspaces.repository.js';
import { workspaceView, type WorkspaceView } from './views.js';

@Injectable()
export class Workspaces {
  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
  ) {}

  /** The caller owns what it makes; an unscoped caller's belongs to nobody. */
  async create(caller: Caller, input: CreateWorkspaceInput, deadline: Deadline): Promise<WorkspaceView> {
    const now = this.clock.now();
    const row = {
      id: newRowId(),
      name: input.name,
      owner_id: caller.kind === 'user' ? caller.userId : '',
      created_at: now,
      updated_at: now,
    };
    await this.unitOfWork.run('workspace.create', deadline, (tx) => insertWorkspace(tx, row));
    return workspaceView(row);
  }

  async listVisible(caller: Caller, deadline: Deadline): Promise<{ workspaces: WorkspaceView[] }> {
    const rows = await listVisibleWorkspaces(this.reader.within(deadline), caller);
    return { workspaces: rows.map(workspaceView) };
  }
}
