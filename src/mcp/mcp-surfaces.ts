import type { ToolServerIdentity } from './sdk/tool-server.js';
import { ASK_TOOL, WAIT_TOOL, type ResponseWait } from './tools/agent-wait.js';
import { answerQuestionTool, type Answering } from './tools/answer-question.tool.js';
import { askUserQuestionTool, type Asking } from './tools/ask-user-question.tool.js';
import {
  getTaskConversationTool,
  type ConversationReading,
  type TaskReading,
} from './tools/get-task-conversation.tool.js';
import { listPendingQuestionsTool, type PendingListing } from './tools/list-pending-questions.tool.js';
import { listTasksTool, type TaskListing } from './tools/list-tasks.tool.js';
import { listWorkspacesTool, type WorkspaceListing } from './tools/list-workspaces.tool.js';
import type { Surface, Tool } from './tools/tool.js';
import { waitForAnswerTool, type BundleReading } from './tools/wait-for-answer.tool.js';

/** What the tools call. */
export interface ToolServices {
  readonly resolver: Answering;
  readonly listing: PendingListing;
  readonly tasks: TaskListing;
  readonly conversation: ConversationReading;
  readonly access: TaskReading;
  readonly workspaces: WorkspaceListing;
  readonly requests: Asking & BundleReading;
  readonly waits: ResponseWait;
}

/**
 * Which tools are where: an agent at work must not be able to see or answer the questions of other tasks, or its own,
 * and nobody else asks in its name.
 */
export function toolsOf(services: ToolServices): Record<Surface, readonly Tool[]> {
  return {
    external: [
      listPendingQuestionsTool(services.listing),
      answerQuestionTool(services.resolver),
      listTasksTool(services.tasks),
      getTaskConversationTool(services.conversation, services.access),
      listWorkspacesTool(services.workspaces),
    ],
    session: [
      askUserQuestionTool(services.requests, services.waits),
      waitForAnswerTool(services.requests, services.waits),
    ],
  };
}

export function serverIdentities(version: string): Record<Surface, ToolServerIdentity> {
  return {
    external: {
      name: 'clarion',
      title: 'Clarion',
      version,
      instructions:
        'Agents at work ask questions here and wait for an answer. List what is waiting with ' +
        'list_pending_questions_kandev, read the background with get_task_conversation_kandev, and answer or decline ' +
        'with answer_question_kandev. Each bundle of questions is answered exactly once: the first answer wins.',
    },
    session: {
      name: 'clarion-session',
      title: 'Clarion, for the agent of one session',
      version,
      instructions:
        `Ask people questions with ${ASK_TOOL}; it waits for their answer. When it returns status pending, call ` +
        `${WAIT_TOOL} with the pending_id it gave.`,
    },
  };
}
