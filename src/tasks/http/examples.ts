import type { Static } from 'typebox';
import { encodeCursor } from '../../common/page-cursor.js';
import type {
  AdmittedMessageView,
  AgentTokenView,
  CreatedSessionView,
  MailboxEntryView,
  MessagePageView,
  MessageView,
  SessionListView,
  SessionView,
  TaskPageView,
  TaskView,
  TurnListView,
  TurnView,
  WorkspaceListView,
  WorkspaceView,
} from '../views.js';

/** What the documentation shows: one workspace, one task in it, one session with one turn. */
export const WORKSPACE: WorkspaceView = {
  id: '019a7c11-52f0-7cc1-9d2e-0f3a4b5c6d7e',
  name: 'Payments team',
  owner_id: '019a7c10-0a1b-7d2c-8e3f-405162738495',
  created_at: '2026-01-30T08:15:00.000Z',
  updated_at: '2026-01-30T08:15:00.000Z',
};

export const WORKSPACES: Static<typeof WorkspaceListView> = { workspaces: [WORKSPACE] };

export const TASK: TaskView = {
  id: '019a7c14-8f20-7a31-b642-c7d8e9fa0b1c',
  workspace_id: WORKSPACE.id,
  title: 'Add invoices',
  description: 'Customers get an invoice for every payment.',
  state: 'open',
  created_at: '2026-01-31T09:00:00.000Z',
  updated_at: '2026-01-31T09:00:00.000Z',
  task_pending_action: null,
  primary_session_pending_action: null,
};

export const COMPLETED_TASK: TaskView = { ...TASK, state: 'completed', updated_at: '2026-01-31T11:30:00.250Z' };

export const TASKS: Static<typeof TaskPageView> = {
  tasks: [{ ...TASK, task_pending_action: 'clarification', primary_session_pending_action: 'clarification' }],
  next_cursor: encodeCursor({ createdAt: TASK.created_at, id: TASK.id }),
};

export const SESSION: SessionView = {
  id: '019a7c15-1122-7344-9566-778899aabbcc',
  task_id: TASK.id,
  state: 'running',
  is_primary: true,
  resume: { mode: 'pull' },
  started_at: '2026-01-31T09:01:00.000Z',
  completed_at: null,
  updated_at: '2026-01-31T09:02:10.500Z',
};

export const ENDED_SESSION: SessionView = {
  ...SESSION,
  state: 'completed',
  completed_at: '2026-01-31T11:30:00.250Z',
  updated_at: '2026-01-31T11:30:00.250Z',
};

export const AGENT_TOKEN: Static<typeof AgentTokenView> = { agent_token: 'cla_EXAMPLE' };

export const CREATED_SESSION: CreatedSessionView = {
  ...SESSION,
  state: 'created',
  updated_at: SESSION.started_at,
  ...AGENT_TOKEN,
};

export const SESSIONS: Static<typeof SessionListView> = {
  sessions: [
    {
      ...SESSION,
      state: 'waiting_for_input',
      pending_action: 'clarification',
      pending_action_revision: { epoch: 3, sequence: 1204 },
    },
  ],
};

export const TURN: TurnView = {
  id: '019a7c16-dead-7eef-8a0b-1c2d3e4f5a6b',
  session_id: SESSION.id,
  task_id: TASK.id,
  started_at: '2026-01-31T09:02:10.500Z',
  completed_at: null,
  created_at: '2026-01-31T09:02:10.500Z',
  updated_at: '2026-01-31T09:02:10.500Z',
};

export const COMPLETED_TURN: TurnView = {
  ...TURN,
  completed_at: '2026-01-31T10:45:00.000Z',
  updated_at: '2026-01-31T10:45:00.000Z',
};

export const TURNS: Static<typeof TurnListView> = { turns: [TURN] };

const MESSAGE: MessageView = {
  id: '019a7c17-0001-7002-8003-000400050006',
  session_id: SESSION.id,
  task_id: TASK.id,
  turn_id: TURN.id,
  author_type: 'user',
  author_id: WORKSPACE.owner_id,
  type: 'message',
  content: 'Start with the data model.',
  requests_input: false,
  queued: false,
  metadata: {},
  created_at: '2026-01-31T09:02:10.500Z',
  updated_at: '2026-01-31T09:02:10.500Z',
};

export const MESSAGES: Static<typeof MessagePageView> = { messages: [MESSAGE], next_cursor: '' };

export const SENT_MESSAGE: Static<typeof AdmittedMessageView> = { message: MESSAGE, admission: 'sent' };

export const QUEUED_MESSAGE: Static<typeof AdmittedMessageView> = {
  message: { ...MESSAGE, queued: true },
  admission: 'queued',
};

export const MAILBOX_ENTRY: Static<typeof MailboxEntryView> = { turn: TURN, prompt: MESSAGE.content };
