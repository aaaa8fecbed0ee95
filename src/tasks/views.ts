import { Type, type Static, type TSchema } from 'typebox';
import { jsonObject } from '../common/json-object.js';
import type { MessageRow } from './persistence/messages.repository.js';
import type { SessionRow } from './persistence/sessions.repository.js';
import type { TaskRow } from './persistence/tasks.repository.js';
import type { TurnRow } from './persistence/turns.repository.js';
import type { WorkspaceRow } from './persistence/workspaces.repository.js';
import { readResumeSettings, type ResumeSettings } from './domain/resume-settings.js';
import { SESSION_STATES } from './domain/session-state.js';

const closed = { additionalProperties: false } as const;
const Instant = Type.String({ format: 'date-time', description: 'UTC, with milliseconds' });
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const literals = <T extends string>(values: readonly T[]) => Type.Enum([...values]);

const ResumeView = Type.Union(
  [
    Type.Object({ mode: Type.Literal('pull') }, closed),
    Type.Object({ mode: Type.Literal('webhook'), url: Type.String() }, closed),
  ],
  { description: 'How a turn reaches an agent that does not wait; without the secret' },
);

/** `"clarification"` while a question of it is open, else null (T). */
const PendingAction = nullable(Type.Literal('clarification'));

export const WorkspaceView = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    owner_id: Type.String({ description: 'Empty when nobody owns it, and everybody sees it' }),
    created_at: Instant,
    updated_at: Instant,
  },
  closed,
);
export type WorkspaceView = Static<typeof WorkspaceView>;

export const TaskView = Type.Object(
  {
    id: Type.String(),
    workspace_id: Type.String({ description: 'Empty when the task is in no workspace, and everybody sees it' }),
    title: Type.String(),
    description: Type.String(),
    state: literals(['open', 'completed', 'cancelled']),
    created_at: Instant,
    updated_at: Instant,
    task_pending_action: PendingAction,
    primary_session_pending_action: PendingAction,
  },
  closed,
);
export type TaskView = Static<typeof TaskView>;

export const SessionView = Type.Object(
  {
    id: Type.String(),
    task_id: Type.String(),
    state: literals(SESSION_STATES),
    is_primary: Type.Boolean(),
    resume: ResumeView,
    started_at: Instant,
    completed_at: nullable(Instant),
    updated_at: Instant,
  },
  closed,
);
export type SessionView = Static<typeof SessionView>;

export const PendingActionRevision = Type.Object(
  {
    epoch: Type.Integer({ description: 'Grows with each start of the server' }),
    sequence: Type.Integer({ description: 'Grows with each look at the pending actions within an epoch' }),
  },
  closed,
);
export type PendingActionRevision = Static<typeof PendingActionRevision>;

export const ListedSessionView = Type.Object(
  {
    ...SessionView.properties,
    pending_action: PendingAction,
    pending_action_revision: PendingActionRevision,
  },
  closed,
);
export type ListedSessionView = Static<typeof ListedSessionView>;

const MadeSecret = Type.Optional(
  Type.String({
    description: 'Only when it was made for this request. Signs the calls of the webhook; shown this once',
  }),
);

export const CreatedSessionView = Type.Object(
  {
    ...SessionView.properties,
    agent_token: Type.String({ description: 'Shown this once; only its hash is stored' }),
    webhook_secret: MadeSecret,
  },
  closed,
);
export type CreatedSessionView = Static<typeof CreatedSessionView>;

export const UpdatedSessionView = Type.Object({ ...SessionView.properties, webhook_secret: MadeSecret }, closed);
export type UpdatedSessionView = Static<typeof UpdatedSessionView>;

export const TurnView = Type.Object(
  {
    id: Type.String(),
    session_id: Type.String(),
    task_id: Type.String(),
    started_at: Instant,
    completed_at: nullable(Instant),
    created_at: Instant,
    updated_at: Instant,
  },
  closed,
);
export type TurnView = Static<typeof TurnView>;

export const MessageView = Type.Object(
  {
    id: Type.String(),
    session_id: Type.String(),
    task_id: Type.String(),
    turn_id: Type.String(),
    author_type: literals(['user', 'agent', 'system']),
    author_id: Type.String(),
    type: Type.String({ description: '`message` or `clarification_request`' }),
    content: Type.String(),
    requests_input: Type.Boolean(),
    queued: Type.Boolean({ description: 'Waits for a turn of its own' }),
    metadata: Type.Record(Type.String(), Type.Unknown(), {
      description: 'Of a clarification_request: its question, status and response; empty otherwise',
    }),
    created_at: Instant,
    updated_at: Instant,
  },
  closed,
);
export type MessageView = Static<typeof MessageView>;

const NextCursor = Type.String({ description: 'Give it as cursor to get the next page; empty at the end' });

export const WorkspaceListView = Type.Object({ workspaces: Type.Array(WorkspaceView) }, closed);
export const TaskPageView = Type.Object({ tasks: Type.Array(TaskView), next_cursor: NextCursor }, closed);
export const SessionListView = Type.Object({ sessions: Type.Array(ListedSessionView) }, closed);
export const AgentTokenView = Type.Object({ agent_token: CreatedSessionView.properties.agent_token }, closed);
export const TurnListView = Type.Object({ turns: Type.Array(TurnView) }, closed);
export const MessagePageView = Type.Object({ messages: Type.Array(MessageView), next_cursor: NextCursor }, closed);
export const MailboxEntryView = Type.Object({ turn: TurnView, prompt: Type.String() }, closed);
export const AdmittedMessageView = Type.Object(
  {
    message: MessageView,
    admission: Type.Enum(['sent', 'queued'], { description: '`sent` opened a turn; `queued` waits for one' }),
  },
  closed,
);

export function workspaceView(row: WorkspaceRow): WorkspaceView {
  return { ...row };
}

export function taskView(row: TaskRow, pending: { readonly task: boolean; readonly primary: boolean }): TaskView {
  return {
    ...row,
    task_pending_action: pendingAction(pending.task),
    primary_session_pending_action: pendingAction(pending.primary),
  };
}

function resumeView(settings: ResumeSettings): SessionView['resume'] {
  return settings.mode === 'pull' ? { mode: 'pull' } : { mode: 'webhook', url: settings.url };
}

export function sessionView(row: SessionRow): SessionView {
  return {
    id: row.id,
    task_id: row.task_id,
    state: row.state,
    is_primary: row.is_primary === 1,
    resume: resumeView(readResumeSettings(row.resume)),
    started_at: row.started_at,
    completed_at: row.completed_at,
    updated_at: row.updated_at,
  };
}

export function pendingAction(isPending: boolean): 'clarification' | null {
  return isPending ? 'clarification' : null;
}

export function turnView(row: TurnRow): TurnView {
  return {
    id: row.id,
    session_id: row.task_session_id,
    task_id: row.task_id,
    started_at: row.started_at,
    completed_at: row.completed_at,
    created_at: row.created_at,
    updated_at: row.updated_at,
  };
}

export function messageView(row: MessageRow): MessageView {
  return {
    id: row.id,
    session_id: row.task_session_id,
    task_id: row.task_id,
    turn_id: row.turn_id,
    author_type: row.author_type,
    author_id: row.author_id,
    type: row.type,
    content: row.content,
    requests_input: row.requests_input === 1,
    queued: row.queued_at !== null,
    metadata: row.type === 'clarification_request' ? jsonObject(row.metadata) : {},
    created_at: row.created_at,
    updated_at: row.updated_at,
  };
}
