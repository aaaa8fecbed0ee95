import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import type { Deadline } from '../common/deadline.js';
import { ConflictError, NotFoundError, ValidationError } from '../common/domain-error.js';
import { usableId } from '../common/ids.js';
import { decodeCursor, encodeCursor } from '../common/page-cursor.js';
import { newRowId } from '../common/row-id.js';
import { Env } from '../config/env.js';
import { EventBus } from '../events/event-bus.js';
import type { Caller } from '../identity/caller.js';
import type { SqlExecutor } from '../persistence/unit-of-work.js';
import { Reader, UnitOfWork } from '../persistence/unit-of-work.js';
import { TaskAccess } from './authorization/task-access.js';
import type { CreateTaskInput, ListTasksInput } from './inputs.js';
import { given, pageSize } from './page.js';
import { PendingActions } from './pending-actions.js';
import { lockSessionsOfTask } from './persistence/sessions.repository.js';
import {
  deleteTask,
  insertTask,
  listVisibleTasks,
  lockTask,
  setTaskState,
  type TaskRow,
} from './persistence/tasks.repository.js';
import { taskView, type TaskView } from './views.js';

@Injectable()
export class Tasks {
  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly access: TaskAccess,
    private readonly pendingActions: PendingActions,
    private readonly events: EventBus,
    private readonly env: Env,
  ) {}

  /** A non-empty workspace has to be one that the caller reaches. @throws NotFoundError, ValidationError */
  async create(caller: Caller, input: CreateTaskInput, deadline: Deadline): Promise<TaskView> {
    const workspaceId = input.workspace_id;
    if (workspaceId === undefined && this.env.authMode === 'enforced') {
      throw new ValidationError('workspace_id', 'is required; "" makes a task that everybody sees');
    }
    if (workspaceId !== undefined && workspaceId !== '') {
      await this.access.workspace(caller, workspaceId, deadline);
    }
    const now = this.clock.now();
    const row: TaskRow = {
      id: newRowId(),
      workspace_id: workspaceId ?? '',
      title: input.title,
      description: input.description ?? '',
      state: 'open',
      created_at: now,
      updated_at: now,
    };
    await this.unitOfWork.run('task.create', deadline, (tx) => insertTask(tx, row));
    return taskView(row, { task: false, primary: false });
  }

  /** L7, L9, L10 and T. @throws ValidationError naming the cursor */
  async list(
    caller: Caller,
    input: ListTasksInput,
    deadline: Deadline,
  ): Promise<{ tasks: TaskView[]; next_cursor: string }> {
    const sql = this.reader.within(deadline);
    const limit = pageSize(input.limit);
    const workspaceId = given(input.workspace_id);
    const cursor = given(input.cursor);
    const found = await listVisibleTasks(sql, caller, {
      limit,
      ...(workspaceId !== undefined && { workspaceId: usableId(workspaceId) }),
      ...(cursor !== undefined && { after: decodeCursor(cursor) }),
    });
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return {
      tasks: await this.withPendingActions(sql, page),
      next_cursor: last === undefined ? '' : encodeCursor({ createdAt: last.created_at, id: last.id }),
    };
  }

  async get(caller: Caller, taskId: string, deadline: Deadline): Promise<TaskView> {
    return this.viewOf(await this.access.task(caller, taskId, deadline), deadline);
  }

  /** The workflow guard. @throws ConflictError while any of its sessions has an open question */
  async complete(caller: Caller, taskId: string, deadline: Deadline): Promise<TaskView> {
    await this.access.task(caller, taskId, deadline);
    const now = this.clock.now();
    const row = await this.unitOfWork.run('task.complete', deadline, async (tx) => {
      const task = await lockTask(tx, taskId);
      if (task === undefined) throw new NotFoundError('task not found');
      if (task.state === 'completed') return task;
      if (task.state === 'cancelled') throw new ConflictError('task is cancelled');
      await lockSessionsOfTask(tx, taskId);
      const pending = await this.pendingActions.ofTasks(tx, [taskId]);
      if (!pending.isEmpty) throw new ConflictError('task has an open question; answer or cancel it first');
      await setTaskState(tx, taskId, 'completed', now);
      return { ...task, state: 'completed' as const, updated_at: now };
    });
    return this.viewOf(row, deadline);
  }

  async delete(caller: Caller, taskId: string, deadline: Deadline): Promise<void> {
    await this.access.task(caller, taskId, deadline);
    const sessionIds = await this.unitOfWork.run('task.delete', deadline, async (tx) => {
      await lockTask(tx, taskId);
      const sessions = await lockSessionsOfTask(tx, taskId);
      await deleteTask(tx, taskId);
      return sessions.map((session) => session.id);
    });
    this.events.publish([{ type: 'task.deleted', taskId, sessionIds }]);
  }

  private async viewOf(row: TaskRow, deadline: Deadline): Promise<TaskView> {
    const [view] = await this.withPendingActions(this.reader.within(deadline), [row]);
    if (view === undefined) throw new Error('one row gives one view');
    return view;
  }

  private async withPendingActions(sql: SqlExecutor, rows: readonly TaskRow[]): Promise<TaskView[]> {
    if (rows.length === 0) return [];
    const ids = rows.map((row) => row.id);
    const pending = await this.pendingActions.ofTasks(sql, ids);
    return rows.map((row) => taskView(row, pending.ofTask(row.id)));
  }
}
