import { expect, it } from '@jest/globals';
import { startApp } from '../support/app.js';
import { RestCaller } from '../support/callers.js';
import { describeEachEngine } from '../support/engines.js';
import { until } from '../support/until.js';
import { WebhookReceiver } from '../support/webhook-receiver.js';

const ENV = { WEBHOOK_ALLOW_PRIVATE: 'true' };

describeEachEngine('when agents begin to be called', (engine) => {
  it('RECOVER-MALFORMED/TURN-PROMPTED: nobody is called by a start that fails, and what is owed is sent by the one that does not', async () => {
    const database = await engine.createDatabase();
    const receiver = await WebhookReceiver.start();
    const first = await startApp(database, { env: ENV });
    const rest = new RestCaller(first.url);
    const task = await rest.make('POST', '/tasks', { title: 'Called' });
    const resume = { mode: 'webhook', url: receiver.url() };
    const session = await rest.make('POST', `/tasks/${task.id}/sessions`, { resume });
    receiver.everyTime({ status: 503 });
    await rest.make('POST', `/task-sessions/${session.id}/turns`, { prompt: 'Go.' });
    await receiver.until(1);
    await first.close();
    receiver.forget();
    receiver.everyTime({ status: 204 });
    await database.sql("UPDATE task_session_turns SET dispatch_next_at = '2026-01-01T00:00:00.000Z'");
    await database.sql(
      `INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at, metadata)
       VALUES ('odd', $1, $2, '2030-01-01T00:00:00.000Z', $3, $3, '{"prompt_dispatch_pending":true}')`,
      [session.id, task.id, '2026-01-01T00:00:00.000Z'],
    );

    await expect(startApp(database, { env: ENV })).rejects.toThrow(/turn odd is reserved/);
    expect(receiver.begun).toBe(1);
    const left = await database.sql("SELECT dispatch FROM task_session_turns WHERE dispatch <> ''");
    expect(left.rows).toEqual([{ dispatch: 'owed' }]);

    await database.sql("DELETE FROM task_session_turns WHERE id = 'odd'");
    const next = await startApp(database, { env: ENV });
    await until(() => receiver.received.length === 1);
    await next.close();
    await receiver.close();
  });
});
