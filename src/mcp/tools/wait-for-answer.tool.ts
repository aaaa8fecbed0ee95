import { bundleNotFound } from '../../clarification/domain/bundle-errors.js';
import type { Deadline } from '../../common/deadline.js';
import { IdField, IntegerField } from '../../common/input/fields.js';
import { schemaOf } from '../../common/input/schema-of.js';
import type { Caller } from '../../identity/caller.js';
import {
  AGENT_WAIT_SCHEMA,
  ASK_TOOL,
  isWaiting,
  sessionOf,
  TIMEOUT_FIELD,
  WAIT_TOOL,
  waitForAgent,
} from './agent-wait.js';
import type { ResponseWait } from './agent-wait.js';
import { toolInputAfterAccess } from './tool-input.js';
import type { Tool } from './tool.js';

export interface BundleReading {
  get(caller: Caller, pendingId: string, deadline: Deadline): Promise<{ readonly session_id: string }>;
}

class WaitInput {
  @IdField({
    description: `The pending_id that ${ASK_TOOL} returned.`,
    example: '0b8f0c9e-4a53-4c43-9a6d-0d4f6b1f7a11',
  })
  pending_id!: string;

  @IntegerField(TIMEOUT_FIELD)
  timeout_seconds?: number;
}

export function waitForAnswerTool(requests: BundleReading, waits: ResponseWait): Tool {
  return {
    name: WAIT_TOOL,
    title: 'Wait for the answer to a question asked before',
    description:
      `Waits for the answer to questions that this session has asked with ${ASK_TOOL} and for which it returned ` +
      '{"status":"pending","pending_id":"…"}. Give that pending_id. The result is the same as that of ' +
      `${ASK_TOOL}: the answers by question id, {"rejected":true,"reject_reason":"…"} when they were declined, or ` +
      '{"status":"pending",…} when there is still no answer: then call this tool again, or go on with other work and ' +
      'call it later. It can be called as often as you like, also after a restart: an answer that was given meanwhile ' +
      'is returned at once. An error beginning with not_active means that the questions can no longer be answered.',
    surface: 'session',
    inputSchema: schemaOf(WaitInput),
    outputSchema: AGENT_WAIT_SCHEMA,
    // It takes the answer over, which moves the session on; taking it again gives the same.
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    holds: isWaiting,
    handler: async (raw, call) => {
      const sessionId = sessionOf(call);
      const input = await toolInputAfterAccess(WaitInput, raw, async ({ pending_id: id }) => {
        if (id === undefined) return;
        const bundle = await requests.get(call.caller, id, call.deadline);
        if (bundle.session_id !== sessionId) throw bundleNotFound();
      });
      return waitForAgent(waits, call, sessionId, input.pending_id, input.timeout_seconds);
    },
  };
}
