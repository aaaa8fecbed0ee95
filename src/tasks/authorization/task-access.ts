import { Injectable } from '@nestjs/common';
import type { Deadline } from '../../common/deadline.js';
import { ForbiddenError, NotFoundError } from '../../common/domain-error.js';
import { usableId } from '../../common/ids.js';
import type { Caller } from '../../identity/caller.js';
import { Reader } from '../../persistence/unit-of-work.js';
import { findVisibleSession, type SessionRow } from '../persistence/sessions.repository.js';
import { findVisibleTask, type TaskRow } from '../persistence/tasks.repository.js';
import { findTurn } from '../persistence/turns.repository.js';
import { findVisibleWorkspace } from '../persistence/workspaces.repository.js';

/** Which tasks, sessions and workspaces a caller reaches. Foreign and missing get the same error (A3, A5). */
@Injectable()
export class TaskAccess {
  constructor(private readonly reader: Reader) {}

  /** THE rule (A4): whether the caller may reach the task; a task that does not exist is reached by nobody scoped. */
  async authorizeTaskAccess(caller: Caller, taskId: string, deadline: Deadline): Promise<boolean> {
    if (caller.kind === 'unscoped') return true;
    return (await findVisibleTask(this.reader.within(deadline), caller, usableId(taskId))) !== undefined;
  }

  /** @throws NotFoundError */
  async task(caller: Caller, taskId: string, deadline: Deadline): Promise<TaskRow> {
    const task = await findVisibleTask(this.reader.within(deadline), caller, usableId(taskId));
    if (task === undefined) throw new NotFoundError('task not found');
    return task;
  }

  /** An agent reaches its own session and no other. @throws NotFoundError */
  async session(caller: Caller, sessionId: string, deadline: Deadline): Promise<SessionRow> {
    const session = await findVisibleSession(this.reader.within(deadline), caller, usableId(sessionId));
    if (session === undefined) throw new NotFoundError('session not found');
    return session;
  }

  /** A session of another task is not there for one who asks for this task's. @throws NotFoundError */
  async sessionOfTask(caller: Caller, taskId: string, sessionId: string, deadline: Deadline): Promise<SessionRow> {
    const session = await this.session(caller, sessionId, deadline);
    if (session.task_id !== taskId) throw new NotFoundError('session not found');
    return session;
  }

  /** A turn of another session is not there either. @throws NotFoundError for the session or the turn */
  async turn(caller: Caller, sessionId: string, turnId: string, deadline: Deadline): Promise<void> {
    const session = await this.session(caller, sessionId, deadline);
    const turn = await findTurn(this.reader.within(deadline), session.id, usableId(turnId));
    if (turn === undefined) throw new NotFoundError('turn not found');
  }

  /** @throws NotFoundError */
  async workspace(caller: Caller, workspaceId: string, deadline: Deadline): Promise<void> {
    const workspace = await findVisibleWorkspace(this.reader.within(deadline), caller, usableId(workspaceId));
    if (workspace === undefined) throw new NotFoundError('workspace not found');
  }
}

/** Calls that an agent may never make are refused before anything is looked up. @throws ForbiddenError */
export function refuseAgents(caller: Caller): void {
  if (caller.kind === 'agent') throw new ForbiddenError('an agent may not make this call');
}
