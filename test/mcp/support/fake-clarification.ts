import { EventEmitter, once } from 'node:events';
import { readBundleRow } from '../../../src/clarification/domain/bundle.js';
import type { BundleRow, Response } from '../../../src/clarification/domain/bundle.js';
import { newMetadata } from '../../../src/clarification/domain/bundle-metadata.js';
import { completeQuestions } from '../../../src/clarification/domain/new-bundle.js';
import { NotFoundError } from '../../../src/common/domain-error.js';
import type { ResponseWait } from '../../../src/mcp/tools/agent-wait.js';
import type { Asking } from '../../../src/mcp/tools/ask-user-question.tool.js';
import type { BundleReading } from '../../../src/mcp/tools/wait-for-answer.tool.js';

interface Bundle {
  readonly sessionId: string;
  readonly rows: readonly BundleRow[];
  response?: Response;
}

const AT = '2026-01-31T09:00:00.000Z';

/** Asking and waiting in memory, so that the tools can be tested without the application. */
export class FakeClarification implements Asking, BundleReading, ResponseWait {
  private readonly pendingIds = new Map<string, string>();
  private readonly bundles = new Map<string, Bundle>();
  private readonly changes = new EventEmitter();
  /** Every wait under way, as its pending id. */
  readonly waits: string[] = [];

  readonly create: Asking['create'] = async (_caller, input) => {
    const request = JSON.stringify(input);
    const pendingId = this.pendingIds.get(request) ?? `pending-${this.pendingIds.size + 1}`;
    if (!this.pendingIds.has(request)) {
      this.bundles.set(pendingId, { sessionId: input.session_id, rows: rowsOf(pendingId, input) });
      this.pendingIds.set(request, pendingId);
    }
    return { pending_id: pendingId };
  };

  readonly get: BundleReading['get'] = async (_caller, pendingId) => ({ session_id: this.find(pendingId).sessionId });

  readonly wait: ResponseWait['wait'] = async (_caller, pendingId, { timeoutMs, signal, sessionId }) => {
    const bundle = this.find(pendingId);
    if (sessionId !== bundle.sessionId) throw notFound();
    this.waits.push(pendingId);
    this.changes.emit('wait');
    const timeUp = AbortSignal.timeout(timeoutMs ?? 60_000);
    try {
      while (bundle.response === undefined && timeoutMs !== 0) {
        await once(this.changes, 'answer', { signal: AbortSignal.any([signal, timeUp]) });
      }
    } catch {
      // The time is up, or the call was ended.
    }
    this.waits.splice(this.waits.indexOf(pendingId), 1);
    this.changes.emit('wait');
    const { response, rows } = bundle;
    return response === undefined ? { kind: 'pending' } : { kind: 'response', response, rows };
  };

  answer(pendingId: string, response: Partial<Response>): void {
    const empty = { pending_id: pendingId, answers: [], rejected: false, reject_reason: '', responded_at: AT };
    this.find(pendingId).response = { ...empty, ...response };
    this.changes.emit('answer');
  }

  /** Resolves once so many waits are under way. */
  async untilWaiting(count: number): Promise<void> {
    while (this.waits.length !== count) await once(this.changes, 'wait');
  }

  private find(pendingId: string): Bundle {
    const bundle = this.bundles.get(pendingId);
    if (bundle === undefined) throw notFound();
    return bundle;
  }
}

function rowsOf(pendingId: string, input: Parameters<Asking['create']>[1]): BundleRow[] {
  const questions = completeQuestions(input.questions);
  const asked = { pendingId, total: questions.length, context: input.context ?? '' };
  return questions.map((question, index) =>
    readBundleRow({
      id: `row-${index}`,
      task_session_id: input.session_id,
      task_id: 'task-1',
      session_task_id: 'task-1',
      turn_id: 'turn-1',
      type: 'clarification_request',
      metadata: newMetadata({ ...asked, question, index }),
      created_at: AT,
      updated_at: AT,
    }),
  );
}

function notFound(): NotFoundError {
  return new NotFoundError('clarification request not found');
}
