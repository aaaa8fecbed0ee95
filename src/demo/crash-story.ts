import type { Resolution } from '../clarification/clarification-resolver.js';
import type { CreatedSessionView, TaskView, TurnView } from '../tasks/views.js';
import { Rest } from './rest.js';
import { until } from './until.js';
import type { Transcript } from './transcript.js';
import { WebhookAgent } from './webhook-agent.js';

const QUESTION = {
  id: 'release',
  prompt: 'Shall I release it?',
  options: [
    { option_id: 'now', label: 'Now' },
    { option_id: 'monday', label: 'On Monday' },
  ],
};

export interface Mortal {
  readonly url: string;
  /** kill -9. */
  kill(): Promise<void>;
  /** Another process on the same database, at the same address. */
  restart(): Promise<void>;
}

/** What becomes of an answer whose server is killed while it is on its way to the agent. */
export async function tellCrashStory(server: Mortal, token: string, out: Transcript): Promise<void> {
  const ada = new Rest(server.url, token);
  const agent = await WebhookAgent.start();
  try {
    out.heading('Another agent has a webhook instead of waiting; it asks');
    const task = await ada.must<TaskView>('POST', '/tasks', { title: 'Release', workspace_id: '' });
    const session = await ada.must<CreatedSessionView>('POST', `/tasks/${task.id}/sessions`, {
      resume: { mode: 'webhook', url: agent.url },
    });
    agent.secret = session.webhook_secret ?? '';
    const asking = new Rest(server.url, session.agent_token);
    const { pending_id: pendingId } = await asking.must<{ pending_id: string }>('POST', '/clarification/request', {
      session_id: session.id,
      questions: [QUESTION],
    });
    out.says('agent', `${QUESTION.id}: ${QUESTION.prompt}`);

    out.heading('Ada answers, and the server is killed while the answer is on its way');
    const answer = { answers: [{ question_id: 'release', selected_options: ['monday'] }] };
    const path = `/clarification/${pendingId}/respond`;
    const lost = ada.send('POST', path, answer).then(
      () => false,
      () => true,
    );
    await until('the agent to be called', () => agent.calls[0]);
    out.says('agent', 'is called, and has not replied yet');
    await server.kill();
    out.says('', 'kill -9');
    out.check(await lost, "Ada's request has ended without a reply");

    out.heading('The next server sends the agent the same again, and tells Ada that it was her answer');
    agent.accepts = true;
    await server.restart();
    const [first] = agent.calls;
    const again = await until('the agent to be called again', () => agent.calls[1]);
    out.check(again.id === first?.id && again.body === first.body, 'the same call, under the same id, byte for byte');
    const told = await until('the answer to be delivered', async () => {
      const reply = await ada.must<Resolution>('POST', path, answer);
      return reply.delivered ? reply : undefined;
    });
    out.says('ada', `claimed: ${told.claimed}, delivered: ${told.delivered}, status: ${told.status}`);
    const [counted] = told.response.answers;
    out.check(counted?.selected_options[0] === 'monday', 'nothing is lost: her answer counts');
    const { turns } = await ada.must<{ turns: TurnView[] }>('GET', `/task-sessions/${session.id}/turns`);
    out.check(turns.length === 2 && turns[1]?.id === first?.id, 'nothing is twice: one turn carries it');
  } finally {
    agent.stop();
  }
}
