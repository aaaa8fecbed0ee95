import { expect, it } from '@jest/globals';
import { startServerProcess } from '../process/server-process.js';
import { startApp } from '../support/app.js';
import { RestCaller } from '../support/callers.js';
import { dumpOf } from '../support/dump.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { Scenario, type Asked } from '../support/scenario.js';
import { command, commandProcess, emptyFolder, type Outcome } from './command-line.js';

const IDS = 'prompt_dispatch_clarification_message_ids';

interface Wreck {
  readonly isAttempted?: boolean;
  readonly hasMessage?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

describeEachEngine('RECOVER-COMMANDS: recovery', (engine) => {
  /** A database as a server leaves it that was killed while it handed an answer over to a webhook. */
  async function killed(wreck: Wreck = {}) {
    const database = await engine.createDatabase();
    const scenario = new Scenario(database);
    const asked = await scenario.asked(['q1'], await scenario.webhookSession());
    const response = { question_id: 'q1', selected_options: ['left'], custom_text: 'nobody’s business' };
    await scenario.plant(asked, 'q1', { status: 'answered', response, response_delivery_pending: true });
    const [row] = await scenario.rows(asked);
    const at = scenario.services.clock.now();
    const turnId = 'reserved';
    await database.sql(
      `INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at, metadata)
       VALUES ($1, $2, $3, '2099-01-31T09:00:01.000Z', $4, $4, $5)`,
      [
        turnId,
        asked.sessionId,
        asked.taskId,
        at,
        JSON.stringify({
          kept: 'as it is',
          prompt_dispatch_pending: true,
          ...(wreck.isAttempted === true && { prompt_dispatch_attempted: true }),
          prompt_dispatch_clarification_turn_id: row?.turnId,
          prompt_dispatch_clarification_pending_id: asked.pendingId,
          [IDS]: [row?.id],
          ...wreck.metadata,
        }),
      ],
    );
    if (wreck.hasMessage === true) {
      await database.sql(
        `INSERT INTO task_session_messages
           (id, task_session_id, task_id, turn_id, author_type, content, created_at, updated_at)
         VALUES ('m1', $1, $2, $3, 'agent', 'nobody’s business', $4, $4)`,
        [asked.sessionId, asked.taskId, turnId, at],
      );
    }
    const recovery = (...args: string[]): Promise<Outcome> =>
      command(['recovery', ...args], { DATABASE_URL: database.url });
    return { database, asked, turnId, recovery };
  }

  async function metadataOf(database: TestDatabase, turnId: string): Promise<unknown> {
    const { rows } = await database.sql<{ metadata: string }>('SELECT metadata FROM task_session_turns WHERE id = $1', [
      turnId,
    ]);
    return rows[0] && JSON.parse(rows[0].metadata);
  }

  /** What the next server says of the question, and of a second answer to it. */
  async function afterStart(database: TestDatabase, { pendingId }: Asked) {
    const app = await startApp(database);
    try {
      const rest = new RestCaller(app.url);
      const { status, active } = (await rest.get(`/clarification/${pendingId}`)).json;
      const again = await rest.post(`/clarification/${pendingId}/respond`, { rejected: true });
      return { status, active, claimed: again.json.claimed };
    } finally {
      await app.close();
    }
  }

  it('shows nothing where nothing was left', async () => {
    const environment = { DATABASE_URL: await engine.createUrl() };
    expect(await commandProcess(['recovery', 'show'], environment)).toEqual({
      status: 0,
      stdout: 'nothing is left to recover\n',
      stderr: '',
    });
  });

  it('shows ids and states, what the next start will do, and nobody’s words; and changes nothing', async () => {
    const { database, asked, turnId, recovery } = await killed();
    const { sessionId, pendingId } = asked;
    const unannounced = { prompt_dispatch_start_event_pending: true };
    await database.sql(
      `INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at, metadata)
       VALUES ('published', $1, $2, $3, $3, $3, $4)`,
      [sessionId, asked.taskId, '2026-01-01T00:00:00.000Z', JSON.stringify(unannounced)],
    );
    const before = await dumpOf(database);
    const shown = await recovery('show');
    expect([shown.status, shown.stderr]).toEqual([0, '']);
    expect(shown.stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['Turns reserved for handing over an answer'],
      ['TURN', 'SESSION', 'BUNDLE', 'ATTEMPTED', 'MESSAGES', 'NEXT START'],
      [turnId, sessionId, pendingId, 'no', 'no', 'withdraw it'],
      [''],
      ['Turns whose events are still to be sent'],
      ['TURN', 'SESSION'],
      ['published', sessionId],
      [''],
      ['Bundles whose hand-over is not settled'],
      ['BUNDLE', 'SESSION'],
      [pendingId, sessionId],
      [''],
    ]);
    expect(await dumpOf(database)).toEqual(before);
  });

  it('discards one whose agent was never called: its turn is gone, and its question can be answered again', async () => {
    const { database, asked, turnId, recovery } = await killed();
    expect(await recovery('discard', turnId)).toEqual({
      status: 0,
      stdout: 'deleted: its agent was never called; the next start makes its question answerable again\n',
      stderr: '',
    });
    expect(await metadataOf(database, turnId)).toBeUndefined();
    expect(await afterStart(database, asked)).toEqual({ status: 'pending', active: true, claimed: true });
  });

  it.each<[string, Wreck]>([
    ['was called', { isAttempted: true }],
    ['has written into it', { hasMessage: true }],
  ])('discards one whose agent %s: the turn stays, an ordinary one, and the answer as history', async (_, wreck) => {
    const { database, asked, turnId, recovery } = await killed(wreck);
    expect((await recovery('show')).stdout).toMatch(/ publish it$/m);
    expect(await recovery('discard', turnId)).toEqual({
      status: 0,
      stdout: 'kept as an ordinary turn: its agent may have the answer, which the next start keeps as history\n',
      stderr: '',
    });
    expect(await metadataOf(database, turnId)).toEqual({ kept: 'as it is' });
    const { rows } = await database.sql('SELECT id FROM task_session_turns WHERE completed_at IS NULL');
    expect(rows).toEqual([{ id: turnId }]);
    expect(await afterStart(database, asked)).toEqual({ status: 'answered', active: false, claimed: false });
    expect((await recovery('show')).stdout).toBe('nothing is left to recover\n');
  });

  it.each([
    ['no list', 'a'],
    ['a list with an empty text', ['a', '']],
    ['a list with a number', [1]],
    ['nothing', undefined],
  ])('RECOVER-MALFORMED: heals what stops every start: a reservation that has %s', async (_, ids) => {
    const { database, asked, turnId, recovery } = await killed({ metadata: { [IDS]: ids } });
    const before = await dumpOf(database);
    await expect(startApp(database)).rejects.toThrow(`turn ${turnId} is reserved for handing over an answer, but`);
    expect(await dumpOf(database)).toEqual(before);
    expect((await recovery('show')).stdout).toMatch(
      new RegExp(`^${turnId} .* fail: metadata\\.${IDS} is not a list of non-empty texts$`, 'm'),
    );
    expect((await recovery('discard', turnId)).status).toBe(0);
    expect(await afterStart(database, asked)).toEqual({ status: 'pending', active: true, claimed: true });
  });

  it('RECOVER-MALFORMED: such a start ends with status 1 and one line, which names the turn and these commands', async () => {
    const { database, turnId } = await killed({ metadata: { [IDS]: {} } });
    const server = startServerProcess({ DATABASE_URL: database.url }, emptyFolder());
    const { code, stdout, stderr } = await server.ended;
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      new RegExp(`^clarion: turn ${turnId} is reserved [^\\n]*"recovery show"[^\\n]*"recovery discard"[^\\n]*\\n$`),
    );
    expect(stderr).not.toContain('nobody’s business');
  });

  it('refuses, in one line, a turn that is not reserved, and a database without one', async () => {
    const { database, asked, recovery } = await killed();
    const before = await dumpOf(database);
    const [first] = (await database.sql<{ id: string }>(`SELECT id FROM task_session_turns WHERE id <> 'reserved'`))
      .rows;
    for (const id of [first?.id ?? '', asked.sessionId, 'nothing', 'a\u0000b', '']) {
      const refused = await recovery('discard', id);
      expect([refused.status, refused.stdout]).toEqual([1, '']);
      expect(refused.stderr).toMatch(
        /^error: there is no reserved turn with the id "[^\n]*"; recovery show lists them\n$/,
      );
    }
    expect(await dumpOf(database)).toEqual(before);
    expect((await recovery('discard')).status).toBe(2);
    expect((await recovery('discard', 'a', 'b')).status).toBe(2);
    expect((await recovery('frobnicate')).status).toBe(2);
    expect((await recovery('--help')).status).toBe(0);
  });

  it('refuses to work beside a running server, and shows that it has gone', async () => {
    const { database, recovery } = await killed();
    const app = await startApp(database);
    try {
      for (const args of [['show'], ['discard', 'reserved']]) {
        const refused = await recovery(...args);
        expect([refused.status, refused.stdout]).toEqual([1, '']);
        expect(refused.stderr).toMatch(/^error: another server is running on \S+; stop it first\n$/);
        expect(refused.stderr).not.toContain('password');
      }
    } finally {
      await app.close();
    }
    expect((await recovery('show')).status).toBe(0);
  });
});
