import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller } from '../support/callers.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, ask, makeEstate } from '../support/estate.js';
import { until } from '../support/until.js';

const NOT_ACTIVE = { error: 'clarification request is no longer active', code: 'not_active' };

describeEachEngine('R6', (engine) => {
  let database: TestDatabase;
  let app: RunningApp | undefined;
  beforeAll(async () => {
    database = await engine.createDatabase();
  });
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  /** The next server on the same database. Nothing of the one before is left but the rows. */
  async function restarted(): Promise<RestCaller> {
    await app?.close();
    app = await startApp(database, { env: { PRE_CLAIM_BUDGET_MS: '60000' } });
    return new RestCaller(app.url);
  }

  const inSession = (rest: RestCaller, sessionId: string) => McpCaller.open(rest.url, `/mcp/sessions/${sessionId}`);

  it('WAIT-RESOLVED, WAIT-TOOL, DETAIL: what was answered before is got, waited for and replayed in the same bytes after it', async () => {
    const before = await restarted();
    const answered = await makeEstate(before, { questions: ['q1', 'q2'] });
    const rejected = await makeEstate(before);
    const won = await before.post(`/clarification/${answered.pendingId}/respond`, answersTo(['q1', 'q2'], 'mine'));
    const declined = await before.post(`/clarification/${rejected.pendingId}/respond`, {
      rejected: true,
      reject_reason: 'not now',
    });
    const details = await Promise.all([answered, rejected].map((one) => before.get(`/clarification/${one.pendingId}`)));
    expect([won, declined].map(({ json }) => json.claimed)).toEqual([true, true]);

    const rest = await restarted();
    for (const [index, { pendingId }] of [answered, rejected].entries()) {
      expect((await rest.get(`/clarification/${pendingId}`)).text).toBe(details[index]?.text);
    }
    const { turn_id: turnId, ...waited } = (await rest.get(`/clarification/${answered.pendingId}/wait`)).json;
    expect(JSON.stringify(waited)).toBe(JSON.stringify(won.json.response));
    const { turns } = await rest.make('GET', `/task-sessions/${answered.sessionId}/turns`);
    expect(turns.map(({ id }: { id: string }) => id)).toEqual([answered.turnId, turnId]);
    const result = await (
      await inSession(rest, answered.sessionId)
    ).call('wait_for_answer_kandev', {
      pending_id: answered.pendingId,
    });
    expect(result.value).toEqual({
      q1: { selected_options: ['left'], selected_labels: ['Left of q1'], custom_text: 'mine', answered: true },
      q2: { selected_options: ['left'], selected_labels: ['Left of q2'], custom_text: 'mine', answered: true },
    });
    const declinedResult = await (
      await inSession(rest, rejected.sessionId)
    ).call('wait_for_answer_kandev', {
      pending_id: rejected.pendingId,
    });
    expect(declinedResult.value).toEqual({ rejected: true, reject_reason: '' });
    const lost = await rest.post(`/clarification/${answered.pendingId}/respond`, { rejected: true });
    expect(lost.json).toEqual({ ...won.json, claimed: false });
    const overMcp = await (
      await McpCaller.open(rest.url)
    ).call('answer_question_kandev', {
      pending_id: rejected.pendingId,
      ...answersTo(['q1']),
    });
    expect(overMcp.value).toMatchObject({ claimed: false, status: 'rejected', response: { reject_reason: '' } });
  });

  it('L2, R3: what was open before is listed, answered once and handed to the agent after it', async () => {
    const before = await restarted();
    const { sessionId, pendingId } = await makeEstate(before);
    const listed = (await before.get('/clarification')).json.bundles;

    const rest = await restarted();
    const after = (await rest.get('/clarification')).json.bundles;
    const without = (bundles: { age_seconds: number }[]) => bundles.map(({ age_seconds: _, ...bundle }) => bundle);
    expect(without(after)).toEqual(without(listed));
    const waiting = (await inSession(rest, sessionId)).call('wait_for_answer_kandev', { pending_id: pendingId });
    await until(async () => (await rest.get(`/task-sessions/${sessionId}`)).json.state === 'waiting_for_input');
    expect((await rest.post(`/clarification/${pendingId}/respond`, answersTo(['q1'], 'at last'))).json).toMatchObject({
      claimed: true,
      delivered: true,
    });
    expect((await waiting).value.q1.custom_text).toBe('at last');
    // In the same turn: nothing was put into the mailbox.
    expect((await rest.get(`/task-sessions/${sessionId}/mailbox`)).status).toBe(204);
  });

  it('CREATE-DEDUP: the same question asked again after it is the same bundle, and its agent waits on', async () => {
    const before = await restarted();
    const { sessionId } = await makeEstate(before);
    const pendingId = await ask(before, sessionId, ['again']);
    const rest = await restarted();
    expect(await ask(rest, sessionId, ['again'])).toBe(pendingId);
  });

  it('X, WAIT-INACTIVE: cancelling works after it, and what was cancelled before stays so', async () => {
    const before = await restarted();
    const [open, cancelled] = [await makeEstate(before), await makeEstate(before)];
    await before.make('POST', `/clarification/${cancelled.pendingId}/cancel`);
    const rest = await restarted();
    expect((await rest.post(`/clarification/${open.pendingId}/cancel`)).json).toEqual({ success: true });
    for (const { pendingId } of [open, cancelled]) {
      expect((await rest.get(`/clarification/${pendingId}`)).json).toMatchObject({
        status: 'cancelled',
        active: false,
      });
      for (const path of ['wait', 'respond', 'cancel']) {
        const refused =
          path === 'wait'
            ? await rest.get(`/clarification/${pendingId}/wait`)
            : await rest.post(
                `/clarification/${pendingId}/${path}`,
                path === 'respond' ? answersTo(['q1']) : undefined,
              );
        expect([refused.status, refused.json]).toEqual([409, NOT_ACTIVE]);
      }
    }
  });

  it('MAILBOX: an answer that resumed the agent before waits in its mailbox after it, until it is acknowledged', async () => {
    const before = await restarted();
    const { sessionId, pendingId } = await makeEstate(before);
    await before.make('POST', `/clarification/${pendingId}/respond`, answersTo(['q1'], 'in the mailbox'));
    const rest = await restarted();
    const entry = await rest.get(`/task-sessions/${sessionId}/mailbox`);
    expect(entry.json.prompt).toContain('in the mailbox');
    await rest.make('POST', `/task-sessions/${sessionId}/mailbox/${entry.json.turn.id}/ack`);
    const last = await restarted();
    expect((await last.get(`/task-sessions/${sessionId}/mailbox`)).status).toBe(204);
  });
});
