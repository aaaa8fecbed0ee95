import type { Estate } from '../support/estate.js';
import { answersTo } from '../support/estate.js';
import { questionOf } from '../support/question.js';

/**
 * Who may do what: the identity matrix of the whole service. `matrix.spec.ts` walks it on both databases and fails
 * when the application has a route or a tool without a row here.
 */

export const CALLERS = ['noToken', 'unscoped', 'owner', 'other', 'ownAgent', 'otherAgent'] as const;

/**
 * - `noToken` sends none while authentication is enforced, `unscoped` sends none while it is off
 * - `owner` owns the workspace of the task, `other` is another user
 * - `ownAgent` is the agent of the task's session, `otherAgent` that of a session of another task
 */
export type CallerName = (typeof CALLERS)[number];

/** A status with the code of its error, e.g. `200` or `404 not_found`. */
export type Verdict = string;
export type Verdicts = Readonly<Record<CallerName, Verdict>>;

export interface Call {
  readonly path: string;
  readonly body?: unknown;
}

export interface RouteRow {
  /** As the application's own list names it. */
  readonly route: string;
  readonly call: (estate: Estate) => Call;
  readonly verdicts: Verdicts;
  /** Where a token's verdict is another one while authentication is off. */
  readonly whileOff?: Partial<Verdicts>;
  /** Done by the owner before the call. */
  readonly before?: { readonly method: string; readonly call: (estate: Estate) => Call; readonly gives: 'turnId' };
  /** Its success does not end by itself. */
  readonly streams?: true;
  /** Which answers tell of the estate: a list holds what its reader may see and nothing else. */
  readonly shows?: keyof Estate;
}

const everybody = (verdict: Verdict): Verdicts => ({
  noToken: verdict,
  unscoped: verdict,
  owner: verdict,
  other: verdict,
  ownAgent: verdict,
  otherAgent: verdict,
});

const UNAUTHORIZED = '401 unauthorized';
const FORBIDDEN = '403 forbidden';
const NOT_FOUND = '404 not_found';

/** For users, each by their rights; never for agents. */
const users = (success: Verdict, ofOthers: Verdict = NOT_FOUND): Verdicts => ({
  noToken: UNAUTHORIZED,
  unscoped: success,
  owner: success,
  other: ofOthers,
  ownAgent: FORBIDDEN,
  otherAgent: FORBIDDEN,
});

/** For users by their rights, and for the session's own agent. */
const usersAndItsAgent = (success: Verdict): Verdicts => ({
  noToken: UNAUTHORIZED,
  unscoped: success,
  owner: success,
  other: NOT_FOUND,
  ownAgent: success,
  otherAgent: NOT_FOUND,
});

/** For the session's own agent; with authentication off everybody without a token is that too. */
const itsAgent = (success: Verdict): Verdicts => ({
  noToken: UNAUTHORIZED,
  unscoped: success,
  owner: FORBIDDEN,
  other: FORBIDDEN,
  ownAgent: success,
  otherAgent: NOT_FOUND,
});

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'matrix', version: '0' } },
};

const session = (estate: Estate) => `/api/v1/task-sessions/${estate.sessionId}`;
const task = (estate: Estate) => `/api/v1/tasks/${estate.taskId}`;
const bundle = (estate: Estate) => `/api/v1/clarification/${estate.pendingId}`;

export const ROUTES: readonly RouteRow[] = [
  { route: 'GET /health/live', call: () => ({ path: '/health/live' }), verdicts: everybody('200') },
  { route: 'GET /health/ready', call: () => ({ path: '/health/ready' }), verdicts: everybody('200') },
  { route: 'GET /metrics', call: () => ({ path: '/metrics' }), verdicts: everybody('200') },

  {
    route: 'POST /api/v1/workspaces',
    call: () => ({ path: '/api/v1/workspaces', body: { name: 'Another' } }),
    verdicts: users('201', '201'),
  },
  {
    route: 'GET /api/v1/workspaces',
    call: () => ({ path: '/api/v1/workspaces' }),
    verdicts: users('200', '200'),
    shows: 'workspaceId',
  },

  {
    route: 'POST /api/v1/tasks',
    call: ({ workspaceId }) => ({ path: '/api/v1/tasks', body: { title: 'Another', workspace_id: workspaceId } }),
    verdicts: users('201'),
  },
  {
    route: 'POST /api/v1/tasks (in no workspace)',
    call: () => ({ path: '/api/v1/tasks', body: { title: 'Another', workspace_id: '' } }),
    verdicts: users('201', '201'),
  },
  {
    route: 'POST /api/v1/tasks (without saying where)',
    call: () => ({ path: '/api/v1/tasks', body: { title: 'Another' } }),
    verdicts: { ...users('400 validation_failed', '400 validation_failed'), unscoped: '201' },
    whileOff: { owner: '201', other: '201' },
  },
  {
    route: 'GET /api/v1/tasks',
    call: ({ workspaceId }) => ({ path: `/api/v1/tasks?workspace_id=${workspaceId}` }),
    verdicts: users('200', '200'),
    shows: 'taskId',
  },
  { route: 'GET /api/v1/tasks/{id}', call: (estate) => ({ path: task(estate) }), verdicts: users('200') },
  { route: 'DELETE /api/v1/tasks/{id}', call: (estate) => ({ path: task(estate) }), verdicts: users('204') },
  {
    route: 'POST /api/v1/tasks/{id}/complete',
    // The estate's question is open: whoever may complete the task meets the workflow guard.
    call: (estate) => ({ path: `${task(estate)}/complete` }),
    verdicts: users('409 conflict'),
  },
  {
    route: 'POST /api/v1/tasks/{id}/sessions',
    call: (estate) => ({ path: `${task(estate)}/sessions`, body: {} }),
    verdicts: users('201'),
  },
  {
    route: 'GET /api/v1/tasks/{id}/task-sessions',
    call: (estate) => ({ path: `${task(estate)}/task-sessions` }),
    verdicts: users('200'),
  },

  {
    route: 'GET /api/v1/task-sessions/{id}',
    call: (estate) => ({ path: session(estate) }),
    verdicts: usersAndItsAgent('200'),
  },
  {
    route: 'PATCH /api/v1/task-sessions/{id}',
    call: (estate) => ({ path: session(estate), body: { state: 'completed' } }),
    verdicts: users('200'),
  },
  {
    route: 'POST /api/v1/task-sessions/{id}/agent-token',
    call: (estate) => ({ path: `${session(estate)}/agent-token` }),
    verdicts: users('200'),
  },
  {
    route: 'POST /api/v1/task-sessions/{id}/turns',
    call: (estate) => ({ path: `${session(estate)}/turns`, body: { prompt: 'Go on' } }),
    verdicts: usersAndItsAgent('201'),
  },
  {
    route: 'GET /api/v1/task-sessions/{id}/turns',
    call: (estate) => ({ path: `${session(estate)}/turns` }),
    verdicts: usersAndItsAgent('200'),
  },
  {
    route: 'POST /api/v1/task-sessions/{id}/turns/{turnId}/complete',
    call: (estate) => ({ path: `${session(estate)}/turns/${estate.turnId}/complete` }),
    verdicts: usersAndItsAgent('200'),
  },
  {
    route: 'GET /api/v1/task-sessions/{id}/messages',
    call: (estate) => ({ path: `${session(estate)}/messages` }),
    verdicts: usersAndItsAgent('200'),
  },
  {
    route: 'POST /api/v1/task-sessions/{id}/messages',
    call: (estate) => ({ path: `${session(estate)}/messages`, body: { content: 'Hello' } }),
    verdicts: usersAndItsAgent('201'),
  },
  {
    route: 'GET /api/v1/task-sessions/{id}/mailbox',
    call: (estate) => ({ path: `${session(estate)}/mailbox?wait=0` }),
    verdicts: usersAndItsAgent('204'),
  },
  {
    route: 'POST /api/v1/task-sessions/{id}/mailbox/{turnId}/ack',
    before: {
      method: 'POST',
      call: (estate) => ({ path: `${session(estate)}/turns`, body: { prompt: 'For the mailbox' } }),
      gives: 'turnId',
    },
    call: (estate) => ({ path: `${session(estate)}/mailbox/${estate.turnId}/ack` }),
    verdicts: usersAndItsAgent('204'),
  },

  {
    route: 'POST /api/v1/clarification/request',
    call: ({ sessionId }) => ({
      path: '/api/v1/clarification/request',
      body: { session_id: sessionId, questions: [questionOf('another')] },
    }),
    verdicts: usersAndItsAgent('200'),
  },
  {
    route: 'GET /api/v1/clarification',
    call: ({ workspaceId }) => ({ path: `/api/v1/clarification?workspace_id=${workspaceId}` }),
    verdicts: users('200', '200'),
    shows: 'pendingId',
  },
  {
    route: 'GET /api/v1/clarification/{id}',
    call: (estate) => ({ path: bundle(estate) }),
    verdicts: usersAndItsAgent('200'),
  },
  {
    route: 'GET /api/v1/clarification/{id}/wait',
    call: (estate) => ({ path: `${bundle(estate)}/wait?timeout=0` }),
    verdicts: usersAndItsAgent('504 wait_timeout'),
  },
  {
    route: 'POST /api/v1/clarification/{id}/respond',
    call: (estate) => ({ path: `${bundle(estate)}/respond`, body: answersTo(['q1']) }),
    verdicts: users('200'),
  },
  {
    route: 'POST /api/v1/clarification/{id}/cancel',
    call: (estate) => ({ path: `${bundle(estate)}/cancel` }),
    verdicts: usersAndItsAgent('200'),
  },

  {
    route: 'GET /api/v1/events',
    call: () => ({ path: '/api/v1/events' }),
    verdicts: { ...everybody('200'), noToken: UNAUTHORIZED },
    streams: true,
  },

  { route: 'POST /mcp', call: () => ({ path: '/mcp', body: INITIALIZE }), verdicts: users('200', '200') },
  // Without an MCP session: whoever may use the surface is told that it needs one.
  { route: 'GET /mcp', call: () => ({ path: '/mcp' }), verdicts: users('400', '400') },
  { route: 'DELETE /mcp', call: () => ({ path: '/mcp' }), verdicts: users('400', '400') },
  {
    route: 'POST /mcp/sessions/{sessionId}',
    call: ({ sessionId }) => ({ path: `/mcp/sessions/${sessionId}`, body: INITIALIZE }),
    verdicts: itsAgent('200'),
  },
  {
    route: 'GET /mcp/sessions/{sessionId}',
    call: ({ sessionId }) => ({ path: `/mcp/sessions/${sessionId}` }),
    verdicts: itsAgent('400'),
  },
  {
    route: 'DELETE /mcp/sessions/{sessionId}',
    call: ({ sessionId }) => ({ path: `/mcp/sessions/${sessionId}` }),
    verdicts: itsAgent('400'),
  },
];

/** `ok`, the code of a tool's refusal, or the status and code with which the surface itself turns the caller away. */
export interface ToolRow {
  readonly tool: string;
  readonly surface: 'external' | 'session';
  readonly args: (estate: Estate) => Record<string, unknown>;
  readonly verdicts: Verdicts;
  readonly shows?: keyof Estate;
}

const external = (success: Verdict, ofOthers: Verdict): Verdicts => users(success, ofOthers);

export const TOOLS: readonly ToolRow[] = [
  {
    tool: 'list_pending_questions_kandev',
    surface: 'external',
    args: ({ workspaceId }) => ({ workspace_id: workspaceId }),
    verdicts: external('ok', 'ok'),
    shows: 'pendingId',
  },
  {
    tool: 'answer_question_kandev',
    surface: 'external',
    args: ({ pendingId }) => ({ pending_id: pendingId, ...answersTo(['q1']) }),
    verdicts: external('ok', 'not_found'),
  },
  {
    tool: 'list_tasks_kandev',
    surface: 'external',
    args: ({ workspaceId }) => ({ workspace_id: workspaceId }),
    verdicts: external('ok', 'ok'),
    shows: 'taskId',
  },
  {
    tool: 'get_task_conversation_kandev',
    surface: 'external',
    args: ({ taskId, sessionId }) => ({ task_id: taskId, session_id: sessionId }),
    verdicts: external('ok', 'not_found'),
  },
  {
    tool: 'list_workspaces_kandev',
    surface: 'external',
    args: () => ({}),
    verdicts: external('ok', 'ok'),
    shows: 'workspaceId',
  },
  {
    tool: 'ask_user_question_kandev',
    surface: 'session',
    args: () => ({ questions: [questionOf('another')], timeout_seconds: 0 }),
    verdicts: itsAgent('ok'),
  },
  {
    tool: 'wait_for_answer_kandev',
    surface: 'session',
    args: ({ pendingId }) => ({ pending_id: pendingId, timeout_seconds: 0 }),
    verdicts: itsAgent('ok'),
  },
];
