import type { Instant } from '../../common/clock.js';
import { NotFoundError } from '../../common/domain-error.js';
import { newRowId } from '../../common/row-id.js';
import type { DomainEvent } from '../../events/domain-event.js';
import type { Tx } from '../../persistence/unit-of-work.js';
import { refuseEnded } from '../../tasks/domain/session-state.js';
import { lockSession } from '../../tasks/persistence/sessions.repository.js';
import { findCurrentTurn } from '../../tasks/persistence/turns.repository.js';
import { openTurn } from '../../tasks/turns/open-turn.tx.js';
import { newMetadata } from '../domain/bundle-metadata.js';
import type { Question } from '../domain/bundle.js';
import { sameRequest } from '../domain/new-bundle.js';
import { findOpenBundles } from './bundles.repository.js';

export interface NewBundle {
  readonly sessionId: string;
  /** Used unless the same questions are open already. */
  readonly pendingId: string;
  readonly questions: readonly Question[];
  readonly context: string;
}

export interface CreatedBundle {
  readonly pendingId: string;
  readonly isNew: boolean;
  readonly events: readonly DomainEvent[];
}

/**
 * (nothing) → active, one message per question. Asking again what the current turn already asks, and has not settled,
 * finds that bundle and writes nothing: decided under the session's lock, so that equal requests at the same instant
 * make one bundle. A session without a turn gets its first one.
 */
export async function createBundle(tx: Tx, bundle: NewBundle, now: Instant): Promise<CreatedBundle> {
  const session = await lockSession(tx, bundle.sessionId);
  if (session === undefined) throw new NotFoundError('session not found');
  refuseEnded(session);
  const events: DomainEvent[] = [];
  let turnId = (await findCurrentTurn(tx, session.id))?.id;
  if (turnId === undefined) {
    const opened = await openTurn(tx, session, { now, forMailbox: false });
    turnId = opened.turn.id;
    events.push(...opened.events);
  } else {
    const open = await findOpenBundles(tx, session.id);
    const known = open.find((rows) => sameRequest(rows, bundle.questions, bundle.context))?.[0];
    if (known !== undefined) return { pendingId: known.pendingId, isNew: false, events };
  }
  const about = { taskId: session.task_id, sessionId: session.id };
  const ids = await insertQuestions(tx, bundle, { ...about, turnId }, now);
  for (const messageId of ids) events.push({ type: 'session.message.added', ...about, messageId });
  events.push({ type: 'clarification.requested', ...about, pendingId: bundle.pendingId });
  return { pendingId: bundle.pendingId, isNew: true, events };
}

async function insertQuestions(
  tx: Tx,
  bundle: NewBundle,
  home: { readonly taskId: string; readonly sessionId: string; readonly turnId: string },
  now: Instant,
): Promise<string[]> {
  const total = bundle.questions.length;
  const rows = bundle.questions.map((question, index) => [
    newRowId(),
    home.sessionId,
    home.taskId,
    home.turnId,
    home.sessionId,
    question.prompt,
    newMetadata({ pendingId: bundle.pendingId, question, index, total, context: bundle.context }),
    now,
  ]);
  const width = 8;
  const values = rows.map((row, index) => {
    const [id, session, task, turn, author, content, metadata, at] = row.map((_, n) => `$${index * width + n + 1}`);
    return `(${id}, ${session}, ${task}, ${turn}, 'agent', ${author}, ${content}, 1, 'clarification_request',
      ${metadata}, ${at}, ${at}, ${at})`;
  });
  await tx.query(
    `INSERT INTO task_session_messages
       (id, task_session_id, task_id, turn_id, author_type, author_id, content, requests_input, type,
        metadata, bundle_created_at, created_at, updated_at)
     VALUES ${values.join(', ')}`,
    rows.flat(),
  );
  return rows.map((row) => row[0] ?? '');
}
