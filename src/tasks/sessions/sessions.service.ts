import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import type { Deadline } from '../../common/deadline.js';
import { NotFoundError } from '../../common/domain-error.js';
import { newRowId } from '../../common/row-id.js';
import { Env } from '../../config/env.js';
import type { DomainEvent } from '../../events/domain-event.js';
import { EventBus } from '../../events/event-bus.js';
import { AgentTokens } from '../../identity/agent-tokens.js';
import type { Caller } from '../../identity/caller.js';
import { Reader, UnitOfWork } from '../../persistence/unit-of-work.js';
import { TaskAccess } from '../authorization/task-access.js';
import { Clarifications } from '../clarification.port.js';
import { DEFAULT_RESUME, readResumeSettings } from '../domain/resume-settings.js';
import { isTerminal, refuseEnded } from '../domain/session-state.js';
import type { CreateSessionInput, ResumeInput, UpdateSessionInput } from '../inputs.js';
import { PendingActions } from '../pending-actions.js';
import { hastenDispatches } from '../persistence/dispatches.repository.js';
import {
  demotePrimarySession,
  findSession,
  insertSession,
  listSessionsOfTask,
  lockSession,
  lockSessionsOfTask,
  setAgentTokenHash,
  setResume,
  setSessionState,
  type SessionRow,
} from '../persistence/sessions.repository.js';
import { lockTask } from '../persistence/tasks.repository.js';
import { chosenResume, type ChosenResume } from '../resume/chosen-resume.js';
import { TurnDispatcher } from '../resume/turn-dispatcher.js';
import {
  pendingAction,
  sessionView,
  type CreatedSessionView,
  type ListedSessionView,
  type SessionView,
  type UpdatedSessionView,
} from '../views.js';

@Injectable()
export class Sessions {
  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly access: TaskAccess,
    private readonly agentTokens: AgentTokens,
    private readonly clarifications: Clarifications,
    private readonly pendingActions: PendingActions,
    private readonly events: EventBus,
    private readonly dispatcher: TurnDispatcher,
    private readonly env: Env,
  ) {}

  /** A task's first session is primary unless said otherwise; a new primary demotes the old one. */
  async create(
    caller: Caller,
    taskId: string,
    input: CreateSessionInput,
    deadline: Deadline,
  ): Promise<CreatedSessionView> {
    await this.access.task(caller, taskId, deadline);
    const now = this.clock.now();
    const token = this.agentTokens.issue();
    const { settings, madeSecret } = this.chosen(input)?.over(DEFAULT_RESUME) ?? { settings: DEFAULT_RESUME };
    const row = await this.unitOfWork.run('session.create', deadline, async (tx) => {
      const task = await lockTask(tx, taskId);
      if (task === undefined) throw new NotFoundError('task not found');
      const existing = await lockSessionsOfTask(tx, taskId);
      const isPrimary = input.is_primary ?? existing.length === 0;
      if (isPrimary) await demotePrimarySession(tx, taskId, now);
      const session: SessionRow = {
        id: newRowId(),
        task_id: taskId,
        state: 'created',
        is_primary: isPrimary ? 1 : 0,
        resume: JSON.stringify(settings),
        started_at: now,
        completed_at: null,
        updated_at: now,
      };
      await insertSession(tx, session, token.hash);
      return session;
    });
    return { ...sessionView(row), agent_token: token.token, ...shownOnce(madeSecret) };
  }

  async get(caller: Caller, sessionId: string, deadline: Deadline): Promise<SessionView> {
    return sessionView(await this.access.session(caller, sessionId, deadline));
  }

  async listOfTask(caller: Caller, taskId: string, deadline: Deadline): Promise<{ sessions: ListedSessionView[] }> {
    await this.access.task(caller, taskId, deadline);
    const sql = this.reader.within(deadline);
    const pending = await this.pendingActions.ofTasks(sql, [taskId]);
    const rows = await listSessionsOfTask(sql, taskId);
    return {
      sessions: rows.map((row) => ({
        ...sessionView(row),
        pending_action: pendingAction(pending.ofSession(row.id)),
        pending_action_revision: pending.revision,
      })),
    };
  }

  /** The old token stops working with the commit. */
  async renewAgentToken(caller: Caller, sessionId: string, deadline: Deadline): Promise<{ agent_token: string }> {
    await this.access.session(caller, sessionId, deadline);
    const token = this.agentTokens.issue();
    const now = this.clock.now();
    await this.unitOfWork.run('session.renew-agent-token', deadline, async (tx) => {
      const session = await lockSession(tx, sessionId);
      if (session === undefined) throw new NotFoundError('session not found');
      await setAgentTokenHash(tx, sessionId, token.hash, now);
    });
    return { agent_token: token.token };
  }

  /**
   * Any state may be set from one that is not final; entering a final one expires the open questions in the same
   * transaction. @throws ConflictError when the session has already ended
   */
  async update(
    caller: Caller,
    sessionId: string,
    input: UpdateSessionInput,
    deadline: Deadline,
  ): Promise<UpdatedSessionView> {
    await this.access.session(caller, sessionId, deadline);
    const chosen = this.chosen(input);
    const now = this.clock.now();
    // Expiring runs to its end whatever becomes of the caller's connection.
    const { row, events, madeSecret } = await this.unitOfWork.run(
      'session.update',
      deadline.withoutCaller(),
      async (tx) => {
        const session = await lockSession(tx, sessionId);
        if (session === undefined) throw new NotFoundError('session not found');
        const changed: DomainEvent[] = [];
        if (input.state !== undefined && input.state !== session.state) {
          refuseEnded(session);
          const ends = isTerminal(input.state);
          if (ends) changed.push(...(await this.clarifications.port.expireActive(tx, sessionId, now)));
          await setSessionState(tx, sessionId, input.state, ends ? now : null, now);
          changed.push({
            type: 'session.state_changed',
            taskId: session.task_id,
            sessionId,
            state: input.state,
          });
        }
        const resume = chosen?.over(readResumeSettings(session.resume));
        if (resume !== undefined) {
          await setResume(tx, sessionId, JSON.stringify(resume.settings), now);
          // What failed may have failed because of the settings that have just been replaced.
          await hastenDispatches(tx, sessionId, now);
        }
        const after = await findSession(tx, sessionId);
        if (after === undefined) throw new Error('a locked session cannot vanish');
        return { row: after, events: changed, madeSecret: resume?.madeSecret };
      },
    );
    this.events.publish(events);
    if (chosen !== undefined) this.dispatcher.look();
    return { ...sessionView(row), ...shownOnce(madeSecret) };
  }

  private chosen({ resume }: { readonly resume?: ResumeInput }): ChosenResume | undefined {
    return resume === undefined ? undefined : chosenResume(resume, { allowPrivate: this.env.webhookAllowPrivate });
  }
}

function shownOnce(madeSecret: string | undefined): { webhook_secret?: string } {
  return madeSecret === undefined ? {} : { webhook_secret: madeSecret };
}
