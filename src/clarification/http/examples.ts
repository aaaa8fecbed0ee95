import type { Static } from 'typebox';
import type { OutcomeInput } from '../domain/outcome-input.js';
import type { CreateBundleInput } from '../inputs.js';
import type {
  BundleDetailView,
  BundlePageView,
  CreatedBundleView,
  ResolutionView,
  ResponseView,
  WaitResponseView,
} from '../schemas.js';

const PENDING_ID = '0b8f0c9e-4a53-4c43-9a6d-0d4f6b1f7a11';
const SESSION_ID = '019a7c15-1122-7344-9566-778899aabbcc';
const TASK_ID = '019a7c14-8f20-7a31-b642-c7d8e9fa0b1c';
const ASKED_AT = '2026-01-31T09:05:00.000Z';

/** What the documentation shows: one question, asked, read, answered and waited for. */
export const ASKED: CreateBundleInput = {
  session_id: SESSION_ID,
  context: 'The service stores about a million rows.',
  questions: [
    {
      title: 'Database',
      prompt: 'Which database shall I use?',
      options: [
        { label: 'SQLite', description: 'One file, one writer.' },
        { label: 'PostgreSQL', description: 'Several writers, a server to run.' },
      ],
    },
  ],
};

export const CREATED: Static<typeof CreatedBundleView> = { pending_id: PENDING_ID };

const QUESTION = {
  question_id: 'q1',
  title: 'Database',
  prompt: 'Which database shall I use?',
  status: 'pending',
  options: [
    { option_id: 'q1_opt1', label: 'SQLite', description: 'One file, one writer.' },
    { option_id: 'q1_opt2', label: 'PostgreSQL', description: 'Several writers, a server to run.' },
  ],
};

export const LISTED: Static<typeof BundlePageView> = {
  bundles: [
    {
      pending_id: PENDING_ID,
      task_id: TASK_ID,
      session_id: SESSION_ID,
      created_at: ASKED_AT,
      age_seconds: 95,
      context: 'The service stores about a million rows.',
      questions: [QUESTION],
    },
  ],
  count: 1,
  next_cursor: '',
};

export const OUTCOME: OutcomeInput = {
  answers: [{ question_id: 'q1', selected_options: ['q1_opt2'], custom_text: 'Version 18, please.' }],
};

const RESPONSE: Static<typeof ResponseView> = {
  pending_id: PENDING_ID,
  answers: [{ question_id: 'q1', selected_options: ['q1_opt2'], custom_text: 'Version 18, please.' }],
  rejected: false,
  reject_reason: '',
  responded_at: '2026-01-31T09:06:35.250Z',
};

export const WAITED: Static<typeof WaitResponseView> = RESPONSE;

export const RESOLVED: Static<typeof ResolutionView> = {
  success: true,
  claimed: true,
  delivered: true,
  status: 'answered',
  response: RESPONSE,
};

export const DETAIL: Static<typeof BundleDetailView> = {
  pending_id: PENDING_ID,
  session_id: SESSION_ID,
  task_id: TASK_ID,
  context: 'The service stores about a million rows.',
  created_at: ASKED_AT,
  status: 'answered',
  active: false,
  delivered: true,
  questions: [{ ...QUESTION, status: 'answered' }],
  response: RESPONSE,
};
