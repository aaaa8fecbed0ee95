import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import type { Deadline } from '../common/deadline.js';
import { ValidationError } from '../common/domain-error.js';
import { newUnguessableId } from '../common/row-id.js';
import { EventBus } from '../events/event-bus.js';
import type { Caller } from '../identity/caller.js';
import { Reader, UnitOfWork } from '../persistence/unit-of-work.js';
import { TaskAccess } from '../tasks/authorization/task-access.js';
import { Clarifications } from '../tasks/clarification.port.js';
import { BundleAccess } from './bundle-access.js';
import { bundleNotActive, bundleNotFound } from './domain/bundle-errors.js';
import { createdAtOf, isResolvedStatus, winnerResponse, type Response } from './domain/bundle.js';
import { completeQuestions } from './domain/new-bundle.js';
import { bundleStatus, contextOf, questionViews, type QuestionView } from './domain/views.js';
import type { CreateBundleInput } from './inputs.js';
import { findBundleStanding } from './persistence/bundles.repository.js';
import { cancelBundle } from './persistence/close-bundles.tx.js';
import { createBundle } from './persistence/create-bundle.tx.js';

export interface BundleDetail {
  readonly pending_id: string;
  readonly session_id: string;
  readonly task_id: string;
  readonly context: string;
  readonly created_at: string;
  readonly status: string;
  readonly active: boolean;
  readonly delivered: boolean;
  readonly questions: readonly QuestionView[];
  readonly response?: Response;
}

/** Asking, looking and cancelling. Waiting is in `delivery/bundle-wait`. */
@Injectable()
export class ClarificationRequests {
  constructor(
    private readonly access: BundleAccess,
    private readonly tasks: TaskAccess,
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly clarifications: Clarifications,
    private readonly events: EventBus,
  ) {}

  /**
   * Asks, or finds the same questions asked in this turn already.
   * @throws NotFoundError for the session, ValidationError, ConflictError when the session has ended
   */
  async create(caller: Caller, input: CreateBundleInput, deadline: Deadline): Promise<{ pending_id: string }> {
    const session = await this.tasks.session(caller, input.session_id, deadline);
    if (input.task_id !== undefined && input.task_id !== session.task_id) {
      throw new ValidationError('task_id', "is not the session's task");
    }
    const bundle = {
      sessionId: session.id,
      pendingId: newUnguessableId(),
      questions: completeQuestions(input.questions),
      context: input.context ?? '',
    };
    const now = this.clock.now();
    const created = await this.unitOfWork.run('bundle.create', deadline, (tx) => createBundle(tx, bundle, now));
    this.events.publish(created.events);
    return { pending_id: created.pendingId };
  }

  /** From the durable rows, so also after a restart. @throws NotFoundError */
  async get(caller: Caller, pendingId: string, deadline: Deadline): Promise<BundleDetail> {
    const authorised = await this.access.authorise(caller, pendingId, deadline);
    const { rows, isActive, isDelivered } = await findBundleStanding(
      this.reader.within(deadline),
      authorised.pendingId,
    );
    const [first] = rows;
    if (first === undefined) throw bundleNotFound();
    const status = bundleStatus(rows);
    const winner = isResolvedStatus(status) ? winnerResponse(rows, authorised.pendingId) : undefined;
    return {
      pending_id: authorised.pendingId,
      session_id: first.sessionId,
      task_id: first.taskId,
      context: contextOf(rows),
      created_at: createdAtOf(rows),
      status,
      active: isActive,
      delivered: winner !== undefined && isDelivered,
      questions: questionViews(rows),
      ...(winner && { response: winner.response }),
    };
  }

  /**
   * X. Runs to its end within its budget, whatever becomes of the caller's connection.
   * @throws NotFoundError, NotActiveError when it was answered, superseded, expired or cancelled before
   */
  async cancel(caller: Caller, pendingId: string, deadline: Deadline): Promise<void> {
    const bundle = await this.access.authorise(caller, pendingId, deadline);
    const now = this.clock.now();
    const events = await this.unitOfWork.run('bundle.cancel', deadline.withoutCaller(), (tx) =>
      cancelBundle(tx, bundle.sessionId, bundle.pendingId, this.clarifications.port, now),
    );
    if (events === undefined) throw bundleNotActive();
    this.events.publish(events);
  }
}
