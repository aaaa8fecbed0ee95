import type { Patch } from '../patch.js';

const file = 'src/clarification/domain/bundle.ts';
const spec = 'test/unit/clarification/bundle.spec.ts';
const views = { file: 'src/clarification/domain/views.ts', spec: 'test/unit/clarification/views.spec.ts' };

/** Reading a bundle from its rows, and showing it. */
export const ROWS: readonly Patch[] = [
  {
    rule: 'M5',
    says: 'A row without a task no longer falls back to that of its session.',
    file,
    find: "taskId: row.task_id || row.session_task_id || '',",
    replace: "taskId: row.task_id ?? row.session_task_id ?? '',",
    spec,
  },
  {
    rule: 'M5a',
    says: 'Rows that name different tasks belong to the first one’s.',
    file,
    find: 'return rows.every((row) => row.taskId === first.taskId) ? first.taskId : undefined;',
    replace: 'return first.taskId;',
    spec,
  },
  {
    rule: 'D1',
    says: 'A bundle was created when its latest row was.',
    file,
    find: '(createdAt < least ? createdAt : least)',
    replace: '(createdAt > least ? createdAt : least)',
    spec,
  },
  {
    rule: 'D2',
    says: 'Rows of one index are left in the order in which they were read.',
    file,
    find: 'compareText(a.createdAt, b.createdAt) ||',
    replace: '',
    spec,
  },
  {
    rule: 'R2b',
    says: 'The last resolved row decides what a mixed bundle was resolved to.',
    file,
    find: 'const status = resolved[0]?.status;',
    replace: 'const status = resolved.at(-1)?.status;',
    spec,
  },
  {
    rule: 'R12',
    says: 'A stored response without selected options reads null instead of an empty list.',
    file,
    find: "selected_options: Array.isArray(selected) ? selected.filter((item) => typeof item === 'string') : [],",
    replace: 'selected_options: (selected ?? null) as string[],',
    spec,
  },
  {
    rule: 'L15',
    says: 'Options that have no id of their own are kept, and cannot be told apart.',
    file,
    find: "if (optionId === '' || options.has(optionId)) continue;",
    replace: 'if (options.has(optionId)) continue;',
    spec,
  },
  {
    rule: 'L16',
    says: 'The nested id counts where the flat one is missing.',
    file,
    find: "const questionId = textOf(metadata['question_id']);",
    replace:
      "const questionId = textOf(metadata['question_id']) || textOf((metadata['question'] as { id?: unknown } | null | undefined)?.id);",
    spec,
  },
  {
    rule: 'D7',
    says: 'A clock that stepped back makes the age negative.',
    ...views,
    find: 'Math.max(0, Math.floor((Date.parse(now) - Date.parse(createdAt)) / 1000))',
    replace: 'Math.floor((Date.parse(now) - Date.parse(createdAt)) / 1000)',
  },
  {
    rule: 'L3',
    says: 'A listed bundle has no session.',
    ...views,
    find: "session_id: rows[0]?.sessionId ?? '',",
    replace: '',
  },
  {
    rule: 'L4',
    says: 'A listed question has its whole document instead of its documented fields.',
    ...views,
    find: 'question_id: questionId,',
    replace: 'question_id: questionId, ...question,',
  },
  {
    rule: 'L4a',
    says: 'An absent status is shown as it is.',
    ...views,
    find: "status: isPendingStatus(status) ? 'pending' : status,",
    replace: 'status,',
  },
];
