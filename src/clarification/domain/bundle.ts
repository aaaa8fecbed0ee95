import { laterOf, type Instant } from '../../common/clock.js';

/*
 * One row per question; the rows' metadata is the only authority on a bundle. Moves of a row's status:
 *
 *   (absent) | '' | pending ──claim──▶ answered | rejected ──restore──▶ pending
 *                           ──cancel─▶ cancelled
 *                           ──expire─▶ expired
 *
 * Supersession moves nothing: it follows from the turn rows alone.
 */

export interface QuestionOption {
  readonly option_id: string;
  readonly label: string;
  readonly description: string;
}

export interface Question {
  readonly id: string;
  readonly title: string;
  readonly prompt: string;
  readonly options: readonly QuestionOption[];
}

/** What was said to one question; empty as `[]` and `''`, never missing (R12). */
export interface AnswerEntry {
  readonly question_id: string;
  readonly selected_options: readonly string[];
  readonly custom_text: string;
}

/** What a waiter, a winner and every loser are given (R12). */
export interface Response {
  readonly pending_id: string;
  readonly answers: readonly AnswerEntry[];
  readonly rejected: boolean;
  readonly reject_reason: string;
  readonly responded_at: Instant;
}

/** A message row as SQL gives it. `metadata` is JSON text, but of anybody's making. */
export interface StoredRow {
  readonly id: string;
  readonly task_session_id: string;
  readonly task_id: string | null;
  readonly session_task_id: string | null;
  readonly turn_id: string;
  readonly type: string;
  readonly metadata: string;
  readonly created_at: Instant;
  readonly updated_at: Instant;
}

export interface BundleRow {
  readonly id: string;
  /** As in the metadata, `''` when it is not text. */
  readonly pendingId: string;
  readonly sessionId: string;
  /** The row's task, else its session's, else `''` (M5). */
  readonly taskId: string;
  readonly turnId: string;
  readonly type: string;
  /** `''` when absent; a status that is not text is its JSON, which is no status we know and so not pending. */
  readonly status: string;
  /** The flat id only; `''` when it is missing or no text (L16). */
  readonly questionId: string;
  /** 0 when missing or not a whole number (D2). */
  readonly questionIndex: number;
  /** `id` is the flat question id, whatever the nested document says. Unreadable parts are empty (L15). */
  readonly question: Question;
  readonly context: string;
  readonly response: AnswerEntry | null;
  readonly agentDisconnected: boolean;
  readonly deliveryPending: boolean;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
  /** The whole document as read, `{}` when it is no object. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Never throws, whatever the metadata holds: an odd row breaks nobody else's request. */
export function readBundleRow(row: StoredRow): BundleRow {
  const metadata = readDocument(row.metadata);
  const questionId = textOf(metadata['question_id']);
  return {
    id: row.id,
    pendingId: textOf(metadata['pending_id']),
    sessionId: row.task_session_id,
    taskId: row.task_id || row.session_task_id || '',
    turnId: row.turn_id,
    type: row.type,
    status: readStatus(metadata['status']),
    questionId,
    questionIndex: readIndex(metadata['question_index']),
    question: readQuestion(metadata['question'], questionId),
    context: textOf(metadata['context']),
    response: readResponse(metadata['response'], questionId),
    agentDisconnected: isSet(metadata['agent_disconnected']),
    deliveryPending: isSet(metadata['response_delivery_pending']),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    metadata,
  };
}

/** Question index, then creation, then row id (D2). Ids compare bytewise, as both databases order them. */
export function inD2Order(rows: readonly BundleRow[]): BundleRow[] {
  return [...rows].sort(
    (a, b) =>
      a.questionIndex - b.questionIndex ||
      compareText(a.createdAt, b.createdAt) ||
      Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)),
  );
}

/** Absent and empty count as pending; a value we don't know does not. */
export function isPendingStatus(status: string): boolean {
  return status === '' || status === 'pending';
}

export function isResolvedStatus(status: string): status is 'answered' | 'rejected' {
  return status === 'answered' || status === 'rejected';
}

/** The task of the bundle (M5). Undefined when a row has none (M5a), or when rows name different ones. */
export function bundleTaskId(rows: readonly BundleRow[]): string | undefined {
  const [first] = rows;
  if (first === undefined || first.taskId === '') return undefined;
  return rows.every((row) => row.taskId === first.taskId) ? first.taskId : undefined;
}

/** D1: the least creation time of the rows. */
export function createdAtOf(rows: readonly BundleRow[]): Instant {
  return rows.map((row) => row.createdAt).reduce((least, createdAt) => (createdAt < least ? createdAt : least));
}

/**
 * What the bundle was resolved to, rebuilt from its rows in any order (R2b); undefined when no row is answered or
 * rejected. The reason of a rejection is not in the rows: only the caller that has just given it can pass it.
 */
export function winnerResponse(
  rows: readonly BundleRow[],
  pendingId: string,
  rejectReason = '',
): { status: 'answered' | 'rejected'; response: Response } | undefined {
  const ordered = inD2Order(rows);
  const resolved = ordered.filter((row) => isResolvedStatus(row.status));
  const status = resolved[0]?.status;
  if (status === undefined || !isResolvedStatus(status)) return undefined;
  return {
    status,
    response: {
      pending_id: pendingId,
      answers: ordered.flatMap((row) => (row.response === null ? [] : [row.response])),
      rejected: status === 'rejected',
      reject_reason: rejectReason,
      responded_at: resolved.map((row) => row.updatedAt).reduce(laterOf),
    },
  };
}

function readDocument(text: string): Readonly<Record<string, unknown>> {
  try {
    const document: unknown = JSON.parse(text);
    return isRecord(document) ? document : {};
  } catch {
    return {};
  }
}

function readStatus(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value);
  } catch {
    // Nested too deep to be written out again.
    return 'unreadable';
  }
}

function readIndex(value: unknown): number {
  const index = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof index === 'number' && Number.isSafeInteger(index) ? index : 0;
}

/** Each part is read for itself, so that one bad part does not hide the others. */
function readQuestion(value: unknown, id: string): Question {
  const question = isRecord(value) ? value : {};
  return {
    id,
    title: textOf(question['title']),
    prompt: textOf(question['prompt']),
    options: readOptions(question['options']),
  };
}

/** Only options that can be chosen and told apart survive: those with an id of their own, the first of each id. */
function readOptions(value: unknown): QuestionOption[] {
  if (!Array.isArray(value)) return [];
  const options = new Map<string, QuestionOption>();
  for (const item of value as unknown[]) {
    const option = isRecord(item) ? item : {};
    const optionId = textOf(option['option_id']);
    if (optionId === '' || options.has(optionId)) continue;
    options.set(optionId, {
      option_id: optionId,
      label: textOf(option['label']),
      description: textOf(option['description']),
    });
  }
  return [...options.values()];
}

function readResponse(value: unknown, questionId: string): AnswerEntry | null {
  if (!isRecord(value)) return null;
  const selected = value['selected_options'];
  return {
    question_id: textOf(value['question_id']) || questionId,
    selected_options: Array.isArray(selected) ? selected.filter((item) => typeof item === 'string') : [],
    custom_text: textOf(value['custom_text']),
  };
}

/** A flag as SQL reads it on both databases. */
function isSet(value: unknown): boolean {
  return value === true || value === 'true' || value === 1 || value === '1';
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
