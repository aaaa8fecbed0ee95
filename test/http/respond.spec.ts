import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller, type Json } from '../support/callers.js';
import { dumpOf } from '../support/dump.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, ask, makeEstate, type Estate } from '../support/estate.js';

const INSTANT = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
const NOT_ACTIVE = { error: 'clarification request is no longer active', code: 'not_active' };

describeEachEngine('responding', (engine) => {
  let database: TestDatabase;
  let app: RunningApp;
  let rest: RestCaller;
  let mcp: McpCaller;
  beforeAll(async () => {
    database = await engine.createDatabase();
    app = await startApp(database, { env: { PRE_CLAIM_BUDGET_MS: '60000' } });
    rest = new RestCaller(app.url);
    mcp = await McpCaller.open(app.url);
  });
  afterAll(() => app.close());

  const respond = (pendingId: string, outcome: object) => rest.post(`/clarification/${pendingId}/respond`, outcome);
  const answer = (pendingId: string, outcome: object) =>
    mcp.call('answer_question_kandev', { pending_id: pendingId, ...outcome });
  const asked = (...questions: string[]): Promise<Estate> => makeEstate(rest, { questions });

  /** The bytes of `response` on either surface. */
  const responseIn = (text: string): string => text.slice(text.indexOf('"response":') + '"response":'.length, -1);

  describe('R10, R12', () => {
    it('N4: the winner of an answer and everybody after it get the same response, on both surfaces', async () => {
      const { pendingId } = await asked('q1', 'q2');
      const outcome = {
        answers: [
          { question_id: 'q2', selected_options: ['right', 'left', 'right'], custom_text: '  both  ' },
          { question_id: 'q1' },
        ],
      };
      const won = await respond(pendingId, outcome);
      const response = {
        pending_id: pendingId,
        answers: [
          { question_id: 'q1', selected_options: [], custom_text: '' },
          { question_id: 'q2', selected_options: ['left', 'right'], custom_text: 'both' },
        ],
        rejected: false,
        reject_reason: '',
        responded_at: INSTANT,
      };
      expect([won.status, won.json]).toEqual([
        200,
        { success: true, claimed: true, delivered: true, status: 'answered', response },
      ]);
      const lost = await respond(pendingId, answersTo(['q1', 'q2'], 'too late'));
      expect([lost.status, lost.json]).toEqual([200, { ...won.json, claimed: false }]);
      const lostOverMcp = await answer(pendingId, { rejected: true, reject_reason: 'too late' });
      expect(lostOverMcp.isError).toBe(false);
      expect(lostOverMcp.value).toEqual({ claimed: false, delivered: true, status: 'answered', response });
      expect(JSON.parse(lostOverMcp.text)).toEqual(lostOverMcp.value);
      expect(new Set([won, lost, lostOverMcp].map(({ text }) => responseIn(text))).size).toBe(1);
      const detail = await rest.get(`/clarification/${pendingId}`);
      const waited = await rest.get(`/clarification/${pendingId}/wait`);
      expect(JSON.stringify(detail.json.response)).toBe(responseIn(won.text));
      const { turn_id: turnId, ...recorded } = waited.json;
      expect([JSON.stringify(recorded), typeof turnId]).toEqual([responseIn(won.text), 'string']);
    });

    it('N4: the winner of a rejection over MCP gives its reason, which later callers are not told', async () => {
      const { pendingId } = await asked('q1');
      const won = await answer(pendingId, { rejected: true, reject_reason: '\n not now \t' });
      const response = {
        pending_id: pendingId,
        answers: [],
        rejected: true,
        reject_reason: 'not now',
        responded_at: INSTANT,
      };
      expect(won.value).toEqual({ claimed: true, delivered: true, status: 'rejected', response });
      const lost = await respond(pendingId, answersTo(['q1']));
      const told = { ...response, reject_reason: '' };
      expect([lost.status, lost.json]).toEqual([
        200,
        { success: true, claimed: false, delivered: true, status: 'rejected', response: told },
      ]);
      expect((await answer(pendingId, { rejected: true, reject_reason: 'not now' })).value.response).toEqual(told);
      expect(responseIn(lost.text)).toBe(responseIn(won.text).replace('not now', ''));
    });

    it('N4a: what can no longer be answered is not_active on both surfaces, another thing than not found, and nothing is written', async () => {
      const cancelled = await asked('q1');
      await rest.make('POST', `/clarification/${cancelled.pendingId}/cancel`);
      const superseded = await asked('q1');
      await rest.make('POST', `/task-sessions/${superseded.sessionId}/turns`, {});
      const expired = await asked('q1');
      await rest.make('PATCH', `/task-sessions/${expired.sessionId}`, { state: 'failed' });
      const before = await dumpOf(database);
      for (const { pendingId } of [cancelled, superseded, expired]) {
        for (const outcome of [answersTo(['q1']), { rejected: true }]) {
          const refused = await respond(pendingId, outcome);
          expect([refused.status, refused.json]).toEqual([409, NOT_ACTIVE]);
          const refusedOverMcp = await answer(pendingId, outcome);
          expect(refusedOverMcp).toEqual({ isError: true, text: `not_active: ${NOT_ACTIVE.error}` });
        }
        const detail = await rest.get(`/clarification/${pendingId}`);
        expect(detail.json).toMatchObject({ active: false, delivered: false });
        expect(detail.json).not.toHaveProperty('response');
        const waited = await rest.get(`/clarification/${pendingId}/wait?timeout=0`);
        expect([waited.status, waited.json]).toEqual([409, NOT_ACTIVE]);
        const cancelledAgain = await rest.post(`/clarification/${pendingId}/cancel`);
        expect([cancelledAgain.status, cancelledAgain.json]).toEqual([409, NOT_ACTIVE]);
      }
      expect(await dumpOf(database)).toEqual(before);
      const missing = await respond('no-such-bundle', answersTo(['q1']));
      expect([missing.status, missing.json]).toEqual([
        404,
        { error: 'clarification request not found', code: 'not_found' },
      ]);
    });

    it('R2, R2a: telling later callers writes nothing, not even a time', async () => {
      const { pendingId } = await asked('q1');
      await respond(pendingId, answersTo(['q1']));
      const before = await dumpOf(database);
      await respond(pendingId, answersTo(['q1'], 'again'));
      await answer(pendingId, { rejected: true });
      expect(await dumpOf(database)).toEqual(before);
    });
  });

  it('N3a: equal decisions, however written and wherever sent, are stored and told in the same bytes', async () => {
    const spellings: Json[] = [
      {
        answers: [{ question_id: 'q1', selected_options: ['left', 'right'], custom_text: 'so' }, { question_id: 'q2' }],
      },
      {
        answers: [
          { question_id: 'q2', custom_text: ' \u2003', selected_options: [] },
          { custom_text: '\ufeffso\n', selected_options: ['right', 'left', 'left'], question_id: 'q1' },
        ],
        rejected: false,
      },
      {
        task_id: 'ignored',
        answers: [
          { question_id: 'q2', selected_options: [], custom_text: '' },
          { question_id: 'q1', selected_options: ['right', 'left'], custom_text: 'so' },
        ],
        reject_reason: '',
      },
    ];
    const told = new Set<string>();
    for (const outcome of spellings) {
      for (const surface of [respond, answer]) {
        const { pendingId } = await asked('q1', 'q2');
        const { text } = await surface(pendingId, outcome);
        const { answers } = JSON.parse(responseIn(text)) as { answers: object };
        expect(JSON.parse(text).claimed).toBe(true);
        told.add(JSON.stringify(answers));
        told.add(JSON.stringify((await rest.get(`/clarification/${pendingId}`)).json.response.answers));
      }
    }
    expect([...told]).toEqual([
      '[{"question_id":"q1","selected_options":["left","right"],"custom_text":"so"},' +
        '{"question_id":"q2","selected_options":[],"custom_text":""}]',
    ]);
  });

  it('N8b: 2000 code points pass, emoji counting one each, on both surfaces', async () => {
    for (const text of ['x'.repeat(2000), '😀'.repeat(2000)]) {
      for (const surface of [respond, answer]) {
        const one = await asked('q1');
        const answered = await surface(one.pendingId, answersTo(['q1'], text));
        expect(JSON.parse(answered.text).response.answers[0].custom_text).toBe(text);
        const two = await asked('q1');
        const rejected = await surface(two.pendingId, { rejected: true, reject_reason: text });
        expect(JSON.parse(rejected.text).response.reject_reason).toBe(text);
      }
    }
  });

  it('A8: a task_id sent along is ignored, whatever it is', async () => {
    for (const taskId of ['another', '', null, 7, ['x'], { a: 1 }]) {
      const { pendingId } = await asked('q1');
      const won = await respond(pendingId, { ...answersTo(['q1']), task_id: taskId });
      expect([won.status, won.json.claimed]).toEqual([200, true]);
      const lost = await answer(pendingId, { ...answersTo(['q1']), task_id: taskId });
      expect(lost.value.claimed).toBe(false);
    }
  });

  it('L12, R2b: the pending rows of a bundle that is answered in part are finished, the others stay, and all hear the first', async () => {
    for (const surface of [respond, answer]) {
      const { pendingId } = await asked('q1', 'q2');
      await rewrite(pendingId, 'q1', (document) => ({
        ...document,
        status: 'rejected',
        response_delivery_pending: undefined,
      }));
      const [before] = await rowsOf(pendingId);
      const won = JSON.parse((await surface(pendingId, answersTo(['q1', 'q2'], 'mine'))).text);
      expect(won).toMatchObject({
        claimed: true,
        status: 'rejected',
        response: { rejected: true, answers: [{ question_id: 'q2', selected_options: ['left'], custom_text: 'mine' }] },
      });
      const [first, second] = await rowsOf(pendingId);
      expect(first).toEqual(before);
      expect(second).toMatchObject({ status: 'answered', response: { question_id: 'q2', custom_text: 'mine' } });
      const lost = JSON.parse((await surface(pendingId, { rejected: true })).text);
      expect(lost).toEqual({ ...won, claimed: false });
    }
  });

  it('L15: a bundle whose question cannot be read is answered by text, or rejected', async () => {
    for (const [surface, outcome] of [
      [respond, { answers: [{ question_id: 'q1', custom_text: 'words' }] }],
      [answer, { rejected: true }],
    ] as const) {
      const { pendingId } = await asked('q1');
      await rewrite(pendingId, 'q1', (document) => ({ ...document, question: [7] }));
      expect(JSON.parse((await surface(pendingId, outcome)).text).claimed).toBe(true);
    }
  });

  it('M5a, A4: a bundle without a task is answered by an unscoped caller, and is nobody else’s', async () => {
    const user = await app.createUser();
    const [own, visible] = [await asked('q1'), await asked('q1')];
    await database.sql(
      `INSERT INTO tasks SELECT '', '', title, description, state, created_at, updated_at FROM tasks WHERE id = $1`,
      [own.taskId],
    );
    await database.sql(`UPDATE task_sessions SET task_id = '' WHERE id = $1`, [own.sessionId]);
    await database.sql(`UPDATE task_session_messages SET task_id = '' WHERE task_session_id = $1`, [own.sessionId]);
    const scoped = new RestCaller(app.url, user.token);
    const scopedMcp = await McpCaller.open(app.url, '/mcp', user.token);
    expect((await scoped.post(`/clarification/${own.pendingId}/respond`, answersTo(['q1']))).status).toBe(404);
    const overMcp = await scopedMcp.call('answer_question_kandev', { pending_id: own.pendingId, ...answersTo(['q1']) });
    expect(overMcp.text).toBe('not_found: clarification request not found');
    for (const caller of [rest, scoped]) {
      const listed = (await caller.get('/clarification?limit=200')).text;
      expect(listed).not.toContain(own.pendingId);
    }
    expect((await respond(own.pendingId, answersTo(['q1']))).json.claimed).toBe(true);
    // Rows without a task of their own take their session's.
    await database.sql(`UPDATE task_session_messages SET task_id = '' WHERE task_session_id = $1`, [visible.sessionId]);
    await database.sql(`UPDATE tasks SET workspace_id = '' WHERE id = $1`, [visible.taskId]);
    const seen = await scoped.post(`/clarification/${visible.pendingId}/respond`, answersTo(['q1']));
    expect([seen.status, seen.json.claimed]).toEqual([200, true]);
  });

  it('ISOLATION: answering one bundle of a turn leaves the other as it was', async () => {
    const { pendingId, sessionId } = await asked('q1');
    const other = await ask(rest, sessionId, ['q1'], 'another context');
    const before = await rowsOf(other);
    expect((await respond(pendingId, answersTo(['q1']))).json.claimed).toBe(true);
    expect(await rowsOf(other)).toEqual(before);
    expect((await answer(other, answersTo(['q1']))).value.claimed).toBe(true);
  });

  async function rowsOf(pendingId: string): Promise<Json[]> {
    const { rows } = await database.sql<{ id: string; metadata: string; updated_at: string }>(
      `SELECT id, metadata, updated_at FROM task_session_messages
       WHERE ${database.dialect.metadataText('metadata', 'pending_id')} = $1 ORDER BY id`,
      [pendingId],
    );
    return rows.map(({ id, metadata, updated_at }) => ({ id, updated_at, ...JSON.parse(metadata) }));
  }

  async function rewrite(pendingId: string, questionId: string, change: (document: Json) => Json): Promise<void> {
    for (const { id, updated_at: _, ...document } of await rowsOf(pendingId)) {
      if (document.question_id !== questionId) continue;
      const metadata = JSON.stringify(change(document));
      await database.sql('UPDATE task_session_messages SET metadata = $2 WHERE id = $1', [id, metadata]);
    }
  }
});
