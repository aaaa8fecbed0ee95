import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { RestCaller, type Json } from '../support/callers.js';
import { describeEachEngine } from '../support/engines.js';
import { WebhookReceiver } from '../support/webhook-receiver.js';

const QUESTIONS = [{ id: 'q1', prompt: 'Which way?', options: [{ label: 'Left' }, { label: 'Right' }] }];
const ANSWER = { answers: [{ question_id: 'q1', selected_options: ['q1_opt1'], custom_text: 'Grüße \u{1f600}' }] };

describeEachEngine('an agent that is called, over REST alone', (engine) => {
  let app: RunningApp;
  let rest: RestCaller;
  let receiver: WebhookReceiver;

  beforeAll(async () => {
    receiver = await WebhookReceiver.start();
    app = await startApp(await engine.createDatabase(), {
      env: { WEBHOOK_ALLOW_PRIVATE: 'true', DELIVERY_BUDGET_MS: '3000', REATTACH_MS: '0' },
    });
    rest = new RestCaller(app.url);
  });
  afterEach(() => receiver.forget());
  afterAll(async () => {
    await app.close();
    await receiver.close();
  });

  async function asked(url = receiver.url()): Promise<{ session: Json; pendingId: string }> {
    const task = await rest.make('POST', '/tasks', { title: 'Called' });
    const session = await rest.make('POST', `/tasks/${task.id}/sessions`, { resume: { mode: 'webhook', url } });
    const input = { session_id: session.id, questions: QUESTIONS };
    return { session, pendingId: (await rest.make('POST', '/clarification/request', input)).pending_id };
  }

  const respond = (pendingId: string) => rest.send('POST', `/clarification/${pendingId}/respond`, ANSWER);
  const turnsOf = async (session: Json): Promise<Json[]> =>
    (await rest.make('GET', `/task-sessions/${session.id}/turns`)).turns;

  it('HANDOVER-WEBHOOK: the answer arrives signed with the secret that was shown, and is delivered', async () => {
    const { session, pendingId } = await asked();
    const { status, json } = await respond(pendingId);
    expect([status, json.claimed, json.delivered]).toEqual([200, true, true]);
    const [call, ...others] = receiver.received;
    const turn = (await turnsOf(session)).at(-1);
    expect([call?.id, others]).toEqual([turn.id, []]);
    expect(call?.verified(session.webhook_secret)).toEqual({
      type: 'clarification.answered',
      session_id: session.id,
      task_id: session.task_id,
      turn_id: turn.id,
      pending_id: pendingId,
      prompt: expect.stringContaining('Grüße \u{1f600}'),
      response: json.response,
    });
  });

  it('HANDOVER-REFUSED: a 503 of the agent leaves the question answerable, and the next answer is delivered', async () => {
    const { pendingId } = await asked();
    receiver.react({ status: 503 });
    const refused = await respond(pendingId);
    expect([refused.status, refused.json.retryable]).toEqual([500, true]);
    const again = await respond(pendingId);
    expect([again.status, again.json.delivered]).toEqual([200, true]);
  });

  it('HANDOVER-UNKNOWN: after a reset the same bytes are sent again under the same id', async () => {
    const { session, pendingId } = await asked();
    receiver.react('reset');
    const { status, json } = await respond(pendingId);
    expect([status, json.claimed, json.delivered]).toEqual([200, true, false]);
    // Its next time comes in seconds; new settings bring it about at once.
    await rest.make('PATCH', `/task-sessions/${session.id}`, {
      resume: { mode: 'webhook', url: receiver.url('/moved') },
    });
    await receiver.until(2);
    const [first, second] = receiver.received;
    expect([second?.id, second?.body, second?.path]).toEqual([first?.id, first?.body, '/moved']);
    second?.verified(session.webhook_secret);
  });

  it('TURN-PROMPTED: a prompt that was refused is sent again as soon as the webhook is moved', async () => {
    receiver.react({ status: 500 });
    const task = await rest.make('POST', '/tasks', { title: 'Prompted' });
    const resume = { mode: 'webhook', url: receiver.url() };
    const session = await rest.make('POST', `/tasks/${task.id}/sessions`, { resume });
    const turn = await rest.make('POST', `/task-sessions/${session.id}/turns`, { prompt: 'Go on.' });
    await receiver.until(1);
    await rest.make('PATCH', `/task-sessions/${session.id}`, { resume: { ...resume, url: receiver.url('/moved') } });
    await receiver.until(2);
    expect(receiver.received.map(({ id, path }) => [id, path])).toEqual([
      [turn.id, '/hook'],
      [turn.id, '/moved'],
    ]);
    expect(receiver.received[1]?.verified(session.webhook_secret)).toEqual({
      type: 'turn.prompted',
      session_id: session.id,
      task_id: task.id,
      turn_id: turn.id,
      prompt: 'Go on.',
    });
  });
});
