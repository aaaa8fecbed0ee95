import { readBundleRow, type BundleRow, type StoredRow } from '../../../src/clarification/domain/bundle.js';

export const PENDING_ID = '5f0c7a52-1f1b-4f9e-8a53-0d4c0f7f6c11';
export const NOON = '2026-03-01T12:00:00.000Z';

/** A row as SQL gives it; `metadata` is JSON text, or a document that is written as JSON. */
export function stored(overrides: Partial<Omit<StoredRow, 'metadata'>> & { metadata?: unknown } = {}): StoredRow {
  const { metadata = {}, ...columns } = overrides;
  return {
    id: 'm1',
    task_session_id: 's1',
    task_id: 't1',
    session_task_id: 't1',
    turn_id: 'turn1',
    type: 'clarification_request',
    created_at: NOON,
    updated_at: NOON,
    ...columns,
    metadata: typeof metadata === 'string' ? metadata : JSON.stringify(metadata),
  };
}

/** The metadata of the n-th question (0-based) of a bundle: id `q<n+1>`, options `q<n+1>_opt1` … `_opt3`. */
export function metadataOf(n: number, changes: Record<string, unknown> = {}): Record<string, unknown> {
  const id = `q${n + 1}`;
  return {
    pending_id: PENDING_ID,
    question_id: id,
    question: {
      id,
      title: `Title ${id}`,
      prompt: `Prompt ${id}?`,
      options: [1, 2, 3].map((m) => ({
        option_id: `${id}_opt${m}`,
        label: `Label ${id}.${m}`,
        description: `Description ${id}.${m}`,
      })),
    },
    question_index: n,
    question_total: 2,
    context: 'Some context',
    status: 'pending',
    ...changes,
  };
}

/** The n-th row of a bundle; `metadata` changes single keys, undefined removing one. */
export function row(
  n: number,
  changes: Partial<Omit<StoredRow, 'metadata'>> & { metadata?: Record<string, unknown> } = {},
): BundleRow {
  const { metadata, ...columns } = changes;
  return readBundleRow(stored({ id: `m${n + 1}`, ...columns, metadata: metadataOf(n, metadata) }));
}

export function bundle(questions = 2): BundleRow[] {
  return Array.from({ length: questions }, (_, n) => row(n));
}

export function answer(n: number, selected: number[] = [], text = '') {
  const id = `q${n + 1}`;
  return { question_id: id, selected_options: selected.map((m) => `${id}_opt${m}`), custom_text: text };
}
