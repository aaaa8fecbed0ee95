import { Type, type Static } from 'typebox';
import { agentResult } from '../../clarification/domain/agent-result.js';
import type { AgentResult } from '../../clarification/domain/agent-result.js';
import type { BundleRow, Response } from '../../clarification/domain/bundle.js';
import type { OnReply } from '../../common/on-reply.js';
import type { Caller } from '../../identity/caller.js';
import type { StillPending } from '../call-hold.js';
import type { ToolCall } from './tool.js';

export const ASK_TOOL = 'ask_user_question_kandev';
export const WAIT_TOOL = 'wait_for_answer_kandev';

/** What waiting for a response needs of the clarification feature. */
export interface ResponseWait {
  wait(
    caller: Caller,
    pendingId: string,
    options: {
      readonly timeoutMs?: number;
      readonly signal: AbortSignal;
      readonly sessionId?: string;
      readonly onReply?: OnReply;
    },
  ): Promise<
    { readonly kind: 'response'; readonly response: Response; readonly rows: readonly BundleRow[] } | StillPending
  >;
}

/** The field that both in-session tools share. */
export const TIMEOUT_FIELD = {
  min: 0,
  optional: true,
  description:
    'How many seconds to wait at most before {"status":"pending"} is returned instead. Leave it out to wait as long as ' +
    'this connection allows. 0 looks without waiting.',
  example: 45,
};

/** A call that only looks holds nothing open. */
export function isWaiting(input: unknown): boolean {
  return !(typeof input === 'object' && input !== null && 'timeout_seconds' in input && input.timeout_seconds === 0);
}

const closed = { additionalProperties: false } as const;

const QuestionAnswer = Type.Object(
  {
    selected_options: Type.Array(Type.String(), {
      description: 'Ids of the chosen options, in the order you gave them',
    }),
    selected_labels: Type.Array(Type.String(), { description: 'The labels of the same options' }),
    custom_text: Type.String({ description: 'Free text, beside or instead of options; empty when none was given' }),
    answered: Type.Boolean({ description: 'false when neither an option nor text was given to this question' }),
  },
  closed,
);

const Declined = Type.Object(
  {
    rejected: Type.Literal(true),
    reject_reason: Type.String({ description: 'Why, in the words of whoever declined; may be empty' }),
  },
  { ...closed, description: 'The questions were declined: go on without an answer' },
);

const Pending = Type.Object(
  {
    status: Type.Literal('pending'),
    pending_id: Type.String({ description: 'Names the question; give it to wait_for_answer_kandev' }),
    next: Type.String({ description: 'What to do now' }),
  },
  { ...closed, description: 'Nobody has answered yet; the question stays open' },
);
export type Pending = Static<typeof Pending>;

/** Three kinds of result, told apart by `status` and `rejected`, which are never question ids. */
export const AGENT_WAIT_SCHEMA = {
  type: 'object' as const,
  anyOf: [
    Pending,
    Declined,
    Type.Record(Type.String(), QuestionAnswer, {
      description: 'Answered: one entry for each question, by question id',
    }),
  ],
};

/** Waits for the response to a bundle of this session and tells the agent. */
export async function waitForAgent(
  waits: ResponseWait,
  call: ToolCall,
  sessionId: string,
  pendingId: string,
  timeoutSeconds: number | undefined,
): Promise<AgentResult | Pending> {
  const message = `waiting for somebody to answer; pending_id ${pendingId}`;
  const outcome = await call.hold.until({ timeoutSeconds, message }, (options) =>
    waits.wait(call.caller, pendingId, { ...options, sessionId, onReply: call.onReply }),
  );
  return outcome.kind === 'pending' ? stillPending(pendingId) : agentResult(outcome.rows, outcome.response);
}

function stillPending(pendingId: string): Pending {
  return {
    status: 'pending',
    pending_id: pendingId,
    next:
      `Nobody has answered yet and the question stays open. Call ${WAIT_TOOL} with {"pending_id":"${pendingId}"} to ` +
      'wait on; you need not ask again.',
  };
}

/** The tools of the `session` surface are only reachable through a session's endpoint. */
export function sessionOf(call: ToolCall): string {
  if (call.sessionId === undefined) throw new Error('an in-session tool was called outside a session');
  return call.sessionId;
}
