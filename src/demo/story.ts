import type { BundlePage } from '../clarification/clarification-listing.js';
import type { Resolution } from '../clarification/clarification-resolver.js';
import type { BundleView } from '../clarification/domain/views.js';
import type { CreatedSessionView, MessageView, TaskView, TurnView, WorkspaceView } from '../tasks/views.js';
import { McpClient } from './mcp-client.js';
import { Rest } from './rest.js';
import type { Transcript } from './transcript.js';
import { until } from './until.js';

/** Where the story happens. A token that is undefined is not sent. */
export interface Stage {
  readonly url: string;
  readonly ada: string | undefined;
  readonly bob: string | undefined;
}

type AgentAnswers = Record<string, { selected_options: string[]; selected_labels: string[]; custom_text: string }>;

interface MailboxEntry {
  readonly turn: TurnView;
  readonly prompt: string;
}

const QUESTIONS = [
  {
    id: 'database',
    title: 'Database',
    prompt: 'Which database shall I use?',
    options: [
      { option_id: 'sqlite', label: 'SQLite', description: 'One file, nothing to run' },
      { option_id: 'postgres', label: 'PostgreSQL', description: 'A server to run' },
    ],
  },
  {
    id: 'region',
    title: 'Region',
    prompt: 'Where shall it run?',
    options: [{ label: 'Frankfurt' }, { label: 'Oregon' }],
  },
];

/** The whole main job: asked and answered in one turn, the loser told, a foreigner refused, an absent agent resumed. */
export async function tellStory(stage: Stage, out: Transcript): Promise<void> {
  const clients: McpClient[] = [];
  try {
    await tell(stage, out, async (name, path, token) => {
      const client = await McpClient.connect(name, `${stage.url}${path}`, token);
      clients.push(client);
      return client;
    });
  } finally {
    // An open stream would keep the process alive after a step that failed.
    await Promise.allSettled(clients.map((client) => client.close()));
  }
}

type Connect = (name: string, path: string, token: string | undefined) => Promise<McpClient>;

async function tell(stage: Stage, out: Transcript, connect: Connect): Promise<void> {
  const ada = new Rest(stage.url, stage.ada);

  out.heading('Ada has a workspace, a task, and an agent at work on it');
  const workspace = await ada.must<WorkspaceView>('POST', '/workspaces', { name: 'Shop' });
  const task = await ada.must<TaskView>('POST', '/tasks', { title: 'Add invoices', workspace_id: workspace.id });
  const session = await ada.must<CreatedSessionView>('POST', `/tasks/${task.id}/sessions`, {});
  const agent = await connect('agent', `/mcp/sessions/${session.id}`, session.agent_token);
  const bot = await connect('ada-bot', '/mcp', stage.ada);
  out.says('agent', `its tools: ${(await agent.toolNames()).join(', ')}`);
  out.says('ada', `her tools: ${(await bot.toolNames()).join(', ')}`);

  out.heading('The agent asks over MCP and blocks');
  const asking = agent.call<AgentAnswers>(
    'ask_user_question_kandev',
    { questions: QUESTIONS, context: 'A shop in Europe.' },
    true,
  );
  // It is awaited below; until then a failure must not end the process on its own.
  asking.catch(() => undefined);
  out.says('agent', 'ask_user_question_kandev: 2 questions');

  out.heading('Ada lists what is waiting and answers, over MCP');
  const bundle = await firstBundle(bot, undefined);
  for (const question of bundle.questions) {
    const options = question.options.map((option) => option.option_id).join(' | ');
    out.says('ada', `${question.question_id}: ${question.prompt} [${options}]`);
  }
  const answers = [
    { question_id: 'database', selected_options: ['postgres'], custom_text: 'Version 18, please.' },
    { question_id: 'region', selected_options: ['q2_opt1'] },
  ];
  const won = await bot.call<Resolution>('answer_question_kandev', { pending_id: bundle.pending_id, answers });
  out.says('ada', `claimed: ${won.claimed}, delivered: ${won.delivered}, status: ${won.status}`);
  out.check(won.claimed === true && won.delivered === true, 'her answer won and was handed over');

  out.heading('The blocked call returns in the same turn');
  const result = await asking;
  for (const id of ['database', 'region']) {
    const { selected_labels: labels = [], custom_text: text = '' } = result[id] ?? {};
    out.says('agent', `${id}: ${labels.join(', ')}${text === '' ? '' : ` (${text})`}`);
  }
  out.check(result['database']?.selected_options[0] === 'postgres', 'the agent has the option that Ada chose');
  const { turns } = await ada.must<{ turns: TurnView[] }>('GET', `/task-sessions/${session.id}/turns`);
  out.check(turns.length === 1, 'the session is still in its first turn');

  out.heading('A second answer, over REST, is told what the winner decided');
  const second = await ada.must<Resolution>('POST', `/clarification/${bundle.pending_id}/respond`, {
    rejected: true,
    reject_reason: 'too late',
  });
  out.says('late', `claimed: ${second.claimed}, status: ${second.status}`);
  out.check(second.claimed === false, 'the second answer did not win');
  out.check(
    JSON.stringify(second.response) === JSON.stringify(won.response),
    "it got the winner's response, byte for byte",
  );

  out.heading('Somebody else cannot tell the question from one that does not exist');
  if (stage.bob === undefined) {
    out.says('bob', 'authentication is off: everybody may see everything');
  } else {
    const bob = new Rest(stage.url, stage.bob);
    const foreign = await bob.send('GET', `/clarification/${bundle.pending_id}`);
    const missing = await bob.send('GET', '/clarification/no-such-question');
    out.says('bob', `${foreign.status} ${JSON.stringify(foreign.body)}`);
    out.check(
      foreign.status === 404 && JSON.stringify(foreign) === JSON.stringify(missing),
      'foreign and missing are the same 404',
    );
  }

  out.heading('The agent asks again and goes away; the answer resumes it in a new turn');
  const abandoned = agent.call<AgentAnswers>('ask_user_question_kandev', { questions: QUESTIONS.slice(0, 1) }, true);
  abandoned.catch(() => undefined);
  const open = await firstBundle(bot, bundle.pending_id);
  await agent.close();
  await untilDetached(ada, session.id, open.pending_id);
  out.says('agent', 'is gone; the question stays open');
  const late = await ada.must<Resolution>('POST', `/clarification/${open.pending_id}/respond`, {
    answers: [{ question_id: 'database', selected_options: ['sqlite'] }],
  });
  out.check(late.claimed === true && late.delivered === true, 'the answer won and was handed over');
  const returned = new Rest(stage.url, session.agent_token);
  const entry = await returned.must<MailboxEntry>('GET', `/task-sessions/${session.id}/mailbox?wait=5`);
  out.says('agent', 'comes back and finds in its mailbox:');
  out.says('', entry.prompt);
  await returned.must<object>('POST', `/task-sessions/${session.id}/mailbox/${entry.turn.id}/ack`);
  const after = await returned.send('GET', `/task-sessions/${session.id}/mailbox`);
  out.check(after.status === 204, 'once: the mailbox is empty now');
}

/** The oldest question that Ada may answer, as soon as there is one other than `known`. */
async function firstBundle(bot: McpClient, known: string | undefined): Promise<BundleView> {
  return until('a question to be listed', async () => {
    const page = await bot.call<BundlePage>('list_pending_questions_kandev', {});
    return page.bundles.find((bundle) => bundle.pending_id !== known);
  });
}

function untilDetached(ada: Rest, sessionId: string, pendingId: string): Promise<MessageView> {
  return until('the question to be detached', async () => {
    const path = `/task-sessions/${sessionId}/messages?order=desc`;
    const { messages } = await ada.must<{ messages: MessageView[] }>('GET', path);
    return messages.find(
      ({ metadata }) => metadata['pending_id'] === pendingId && metadata['agent_disconnected'] === true,
    );
  });
}
