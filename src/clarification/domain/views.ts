import type { Instant } from '../../common/clock.js';
import {
  bundleTaskId,
  createdAtOf,
  inD2Order,
  isPendingStatus,
  isResolvedStatus,
  type BundleRow,
  type QuestionOption,
} from './bundle.js';

/** A question as everybody sees it (L4): every field always there, never null (L4a). */
export interface QuestionView {
  readonly question_id: string;
  readonly title: string;
  readonly prompt: string;
  readonly status: string;
  readonly options: readonly QuestionOption[];
}

/** A bundle as the listing gives it (L3). */
export interface BundleView {
  readonly pending_id: string;
  readonly task_id: string;
  readonly session_id: string;
  readonly created_at: Instant;
  readonly age_seconds: number;
  readonly context: string;
  readonly questions: readonly QuestionView[];
}

/** @param rows the rows of one bundle, at least one, in any order */
export function bundleView(rows: readonly BundleRow[], now: Instant): BundleView {
  const createdAt = createdAtOf(rows);
  return {
    pending_id: rows[0]?.pendingId ?? '',
    task_id: bundleTaskId(rows) ?? '',
    session_id: rows[0]?.sessionId ?? '',
    created_at: createdAt,
    age_seconds: ageSeconds(now, createdAt),
    context: contextOf(rows),
    questions: questionViews(rows),
  };
}

/** In D2 order; an absent status reads `pending` (L4a). */
export function questionViews(rows: readonly BundleRow[]): QuestionView[] {
  return inD2Order(rows).map(({ questionId, question, status }) => ({
    question_id: questionId,
    title: question.title,
    prompt: question.prompt,
    status: isPendingStatus(status) ? 'pending' : status,
    options: question.options,
  }));
}

/** Every row carries the context; one that was lost on the first is taken from the next. */
export function contextOf(rows: readonly BundleRow[]): string {
  return inD2Order(rows).find((row) => row.context !== '')?.context ?? '';
}

/** The bundle's status in one word: `pending` while any row is, else the winner's (R2b), else the first row's. */
export function bundleStatus(rows: readonly BundleRow[]): string {
  const ordered = inD2Order(rows);
  if (ordered.some((row) => isPendingStatus(row.status))) return 'pending';
  return (ordered.find((row) => isResolvedStatus(row.status)) ?? ordered[0])?.status ?? '';
}

/** Whole seconds, never below 0, whatever the clock has done since (D7). */
export function ageSeconds(now: Instant, createdAt: Instant): number {
  return Math.max(0, Math.floor((Date.parse(now) - Date.parse(createdAt)) / 1000));
}
