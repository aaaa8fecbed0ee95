import { BooleanField, ChoiceField, IdField, IntegerField, ObjectField, TextField } from '../common/input/fields.js';
import { SESSION_STATES, type SessionState } from './domain/session-state.js';
import { WEBHOOK_SECRET_PATTERN } from './resume/webhook/webhook-secret.js';
import { MAX_WEBHOOK_URL } from './resume/webhook/webhook-url.js';

const MAX_NAME = 200;
const MAX_DESCRIPTION = 16_000;
/** Above what the answers of a whole bundle, written out with their questions, can be. */
const MAX_MESSAGE = 64_000;

// The cursor after a bundle with the longest name, written in escapes, is shorter.
const CURSOR = { max: 2048, optional: true, description: 'The next_cursor of the page before.' } as const;
const LIMIT = {
  optional: true,
  default: 50,
  description: 'How many; below 1 is 50, above 200 is 200.',
} as const;

const RESUME = { optional: true, description: 'How an answer reaches an agent that does not wait.' } as const;

export class CreateWorkspaceInput {
  @TextField({ blank: false, max: MAX_NAME, description: 'What people call it.', example: 'Payments team' })
  name!: string;
}

export class CreateTaskInput {
  @TextField({ blank: false, max: MAX_NAME, description: 'The work in a few words.', example: 'Add invoices' })
  title!: string;

  @TextField({ max: MAX_DESCRIPTION, optional: true, description: 'What is to be done.' })
  description?: string;

  @IdField({
    optional: true,
    description: 'Required when authentication is enforced, where "" makes a task that everybody sees.',
  })
  workspace_id?: string;
}

export class ListTasksInput {
  @IdField({ optional: true, description: 'Only tasks of this workspace; it only narrows.' })
  workspace_id?: string;

  @TextField(CURSOR)
  cursor?: string;

  @IntegerField(LIMIT)
  limit?: number;
}

export class ResumeInput {
  @ChoiceField({
    values: ['pull', 'webhook'],
    description: 'pull: the agent fetches its next turn from the mailbox. webhook: the turn is sent to its url.',
  })
  mode!: 'pull' | 'webhook';

  @TextField({
    max: MAX_WEBHOOK_URL,
    optional: true,
    description: 'Required for the mode webhook, and only for it: https, without user name, password and fragment.',
    example: 'https://agent.example/hook',
  })
  url?: string;

  @TextField({
    pattern: WEBHOOK_SECRET_PATTERN,
    patternHint: 'be whsec_ and the base64 of 24 to 64 bytes',
    optional: true,
    description:
      'What calls are signed with, only for the mode webhook. Left out, a webhook keeps the one it has; a new one gets ' +
      'one made, which the reply shows once as webhook_secret.',
  })
  secret?: string;
}

export class CreateSessionInput {
  @BooleanField({ optional: true, description: "A task's first session is primary unless this says otherwise." })
  is_primary?: boolean;

  @ObjectField(() => ResumeInput, RESUME)
  resume?: ResumeInput;
}

export class UpdateSessionInput {
  @ChoiceField({
    values: SESSION_STATES,
    optional: true,
    description: 'completed, failed and cancelled are final and expire the open questions.',
  })
  state?: SessionState;

  @ObjectField(() => ResumeInput, RESUME)
  resume?: ResumeInput;
}

export class OpenTurnInput {
  @TextField({ blank: false, max: MAX_MESSAGE, optional: true, description: "Stored as the turn's first message." })
  prompt?: string;
}

export class ListMessagesInput {
  @TextField(CURSOR)
  cursor?: string;

  @IntegerField(LIMIT)
  limit?: number;

  @ChoiceField({ values: ['asc', 'desc'], optional: true, default: 'asc', description: 'Oldest or newest first.' })
  order?: 'asc' | 'desc';
}

export class ConversationInput {
  @IdField({ description: 'The task whose messages to read.' })
  task_id!: string;

  @IdField({ optional: true, description: 'Only the messages of this session of it.' })
  session_id?: string;

  @TextField(CURSOR)
  cursor?: string;

  @IntegerField(LIMIT)
  limit?: number;
}

export class SendMessageInput {
  @TextField({ blank: false, max: MAX_MESSAGE, description: 'The text of the message.' })
  content!: string;

  @TextField({
    pattern: '^[\\x21-\\x7e]{1,128}$',
    patternHint: 'be 1 to 128 printable ASCII characters without spaces',
    optional: true,
    description: 'Unique in the session: sending it again gives the first reply and nothing new.',
  })
  client_message_id?: string;
}

export class ReadMailboxInput {
  @IntegerField({ optional: true, min: 0, max: 60, default: 0, description: 'Seconds to wait for an entry.' })
  wait?: number;
}
