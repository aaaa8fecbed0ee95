import { expect, it } from '@jest/globals';
import { startApp } from '../support/app.js';
import { RestCaller } from '../support/callers.js';
import { describeEachEngine } from '../support/engines.js';

const QUESTIONS = [{ prompt: 'Which?', options: [{ label: 'this' }, { label: 'that' }] }];

describeEachEngine('pending actions over REST', (engine) => {
  it('PENDING-ACTION: a session says whether its agent asks, numbered so that the older of two looks can be told', async () => {
    const url = await engine.createUrl();
    let server = await startApp({ url });
    const looks: { action: unknown; epoch: number; sequence: number }[] = [];
    try {
      const rest = new RestCaller(server.url);
      const task = await rest.make('POST', '/tasks', { title: 'watched' });
      const session = await rest.make('POST', `/tasks/${task.id}/sessions`);
      const look = async (): Promise<void> => {
        const { sessions } = await new RestCaller(server.url).make('GET', `/tasks/${task.id}/task-sessions`);
        const [{ pending_action: action, pending_action_revision: revision }] = sessions;
        looks.push({ action, ...revision });
      };
      await look();
      await rest.make('POST', '/clarification/request', { session_id: session.id, questions: QUESTIONS });
      await look();
      await look();
      await server.close();
      server = await startApp({ url });
      await look();
    } finally {
      await server.close();
    }
    expect(looks.map(({ action }) => action)).toEqual([null, 'clarification', 'clarification', 'clarification']);
    expect(looks.map(({ epoch }) => epoch)).toEqual([1, 1, 1, 2]);
    const [first, second, third] = looks.map(({ sequence }) => sequence) as [number, number, number];
    expect(second).toBeGreaterThan(first);
    expect(third).toBeGreaterThan(second);
  });
});
