import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ConflictError } from '../../src/common/domain-error.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { countActiveBundles } from '../../src/clarification/persistence/count-active-bundles.query.js';
import { noteUnnotedRows } from '../../src/clarification/persistence/note-superseded.tx.js';
import { deleteTurn } from '../../src/tasks/persistence/reservations.repository.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { Scenario, soon, type Asked, type SessionOf } from '../support/scenario.js';
import { NOT_DELIVERED, UNKNOWN } from '../support/scripted-port.js';

const BOTH = ['a', 'b'];

interface Row {
  readonly id: string;
  readonly pending_id: string;
  readonly status: string;
  readonly turn_id: string;
  readonly superseded_by: string | null;
}

describeEachEngine('notes on superseded questions', (engine) => {
  let database: TestDatabase;
  let scenario: Scenario;

  beforeEach(async () => {
    database ??= await engine.createDatabase();
    await database.sql('DELETE FROM tasks');
    scenario = new Scenario(database);
  });

  async function rows(): Promise<readonly Row[]> {
    const text = (key: 'pending_id' | 'status') => engine.dialect.metadataText('m.metadata', key);
    const { rows: found } = await database.sql<Row>(
      `SELECT m.id, ${text('pending_id')} AS pending_id, ${text('status')} AS status, m.turn_id, m.superseded_by
       FROM task_session_messages m WHERE m.type = 'clarification_request' ORDER BY m.id`,
    );
    return found;
  }

  const notes = async (asked: Asked): Promise<(string | null)[]> =>
    (await rows()).filter((row) => row.pending_id === asked.pendingId).map((row) => row.superseded_by);

  /** All of it, in pages of two. */
  async function listed(): Promise<string[]> {
    const ids: string[] = [];
    for (let cursor = ''; ;) {
      const page = await scenario.services.listing.list(UNSCOPED, { limit: 2, cursor }, soon());
      ids.push(...page.bundles.map((bundle) => bundle.pending_id));
      cursor = page.next_cursor;
      if (cursor === '') return ids.sort();
    }
  }

  async function start(): Promise<void> {
    scenario = scenario.restarted();
    await scenario.services.recovery.onApplicationBootstrap();
    await scenario.services.recovery.beforeApplicationShutdown();
  }

  /** A turn that is reserved for an answer, and newer than any other of its session. */
  async function reserve(session: SessionOf, flags: Readonly<Record<string, unknown>>): Promise<void> {
    await database.sql(
      `INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at, metadata)
       VALUES ('reserved', $1, $2, $3, $3, $3, $4)`,
      [
        session.sessionId,
        session.taskId,
        '2030-01-01T00:00:00.000Z',
        JSON.stringify({ prompt_dispatch_pending: true, ...flags }),
      ],
    );
  }

  it('PLAN: opening a turn notes what it supersedes, and nothing else', async () => {
    const [old, other] = [await scenario.asked(BOTH), await scenario.asked(BOTH)];
    const turn = await scenario.openTurn(old);
    expect(await notes(old)).toEqual([turn.id, turn.id]);
    expect(await notes(other)).toEqual([null, null]);
    const next = await scenario.asked(BOTH, old);
    await scenario.reject(next);
    await scenario.openTurn(old);
    expect(await notes(next)).toEqual([null, null]);
    expect(await notes(old)).toEqual([turn.id, turn.id]);
  });

  it('D4, L1, PENDING-ACTION: a note decides nothing: a bundle that bears one by mistake is active for all who look at it', async () => {
    const [asked, wrong] = [await scenario.asked(BOTH), await scenario.asked(['q1'])];
    await scenario.plant(asked, 'a', { status: 'cancelled' });
    await database.sql('UPDATE task_session_messages SET superseded_by = turn_id WHERE type = $1', [
      'clarification_request',
    ]);
    expect(await scenario.isActive(asked)).toBe(true);
    const { task_pending_action } = await scenario.services.tasks.get(UNSCOPED, asked.taskId, soon());
    expect(task_pending_action).toBe('clarification');
    await expect(scenario.services.tasks.complete(UNSCOPED, asked.taskId, soon())).rejects.toThrow(ConflictError);
    const admitted = { content: 'Go on.' };
    const { admission } = await scenario.services.messages.admit(UNSCOPED, asked.sessionId, admitted, soon());
    expect(admission).toBe('queued');
    expect((await scenario.answer(asked, BOTH)).claimed).toBe(true);
    await scenario.cancel(wrong);
    expect(await scenario.statuses(wrong)).toEqual(['cancelled']);
  });

  it('L1, L12: a row that bears a note by mistake does not hide its bundle while another one bears none', async () => {
    for (const missing of BOTH) {
      const asked = await scenario.asked(BOTH);
      const noted = (await scenario.rows(asked)).filter((row) => row.questionId !== missing).map((row) => row.id);
      await database.sql('UPDATE task_session_messages SET superseded_by = turn_id WHERE id = $1', noted);
      expect(await listed()).toContain(asked.pendingId);
    }
    expect(await countActiveBundles(database.reader.within(soon()))).toBe(2);
  });

  it('L1, D4: a question whose newer turn goes, by whatever hand, is listed again', async () => {
    const asked = await scenario.asked(BOTH);
    const turn = await scenario.openTurn(asked);
    expect(await listed()).toEqual([]);
    await database.sql('DELETE FROM task_session_turns WHERE id = $1', [turn.id]);
    expect(await notes(asked)).toEqual([null, null]);
    expect(await listed()).toEqual([asked.pendingId]);
    expect(await countActiveBundles(database.reader.within(soon()))).toBe(1);
  });

  describe('that are missing, as an older version or another hand leaves them', () => {
    it('L1, PLAN: are written at the next start, and cost nothing but time before it', async () => {
      const asked = await scenario.asked(BOTH);
      const first = await scenario.openTurn(asked);
      const open = await scenario.asked(['q1'], asked);
      const second = await scenario.openTurn(asked);
      const last = await scenario.asked(BOTH, asked);
      await database.sql('UPDATE task_session_messages SET superseded_by = NULL');
      expect(await listed()).toEqual([last.pendingId]);
      expect(first.id < second.id).toBe(true);
      await start();
      expect(await notes(asked)).toEqual([second.id, second.id]);
      expect(await notes(open)).toEqual([second.id]);
      expect(await notes(last)).toEqual([null, null]);
      expect(await listed()).toEqual([last.pendingId]);
      const before = await scenario.snapshot(asked);
      await start();
      expect(await scenario.snapshot(asked)).toEqual(before);
    });

    it('L1, D4: are not written for the sake of a reserved turn, which may be withdrawn even when it was attempted', async () => {
      for (const flags of [{}, { prompt_dispatch_attempted: true }]) {
        const asked = await scenario.asked(BOTH);
        await reserve(asked, {
          ...flags,
          // Not this bundle's answer: it stays pending whatever becomes of the turn.
          prompt_dispatch_clarification_turn_id: 'nowhere',
          prompt_dispatch_clarification_pending_id: 'nothing',
          prompt_dispatch_clarification_message_ids: ['nobody'],
        });
        expect(await database.unitOfWork.run('note', soon(), (tx) => noteUnnotedRows(tx, 100))).toBe(0);
        await database.sql("DELETE FROM task_session_turns WHERE id = 'reserved'");
        expect(await listed()).toContain(asked.pendingId);
      }
    });
  });

  /** What may happen to one of two sessions, one of whose agents is called. */
  const anyMove = fc.record({
    to: fc.constantFrom(0, 1),
    move: fc.constantFrom(
      'ask',
      'ask',
      'turn',
      'answer',
      'answer',
      'refused',
      'unknown',
      'reject',
      'cancel',
      'complete',
      'say',
      'discard',
      'restart',
      'end',
    ),
  });

  it('D4, L1, PLAN: after any history no active row bears a note, every superseded one does, and the listing has what is active', async () => {
    const property = fc.asyncProperty(fc.array(anyMove, { minLength: 6, maxLength: 18 }), async (moves) => {
      await database.sql('DELETE FROM tasks');
      scenario = new Scenario(database, { env: { REATTACH_MS: '0' } });
      const sessions = [await scenario.session(), await scenario.webhookSession()];
      const asked: Asked[] = [];
      for (const { to, move } of moves) {
        const session = sessions[to] as SessionOf;
        await make(move, session, asked).catch(() => undefined);
        await check(asked);
      }
    });
    await fc.assert(property, { numRuns: 12 });
  }, 240_000);

  async function make(move: string, session: SessionOf, asked: Asked[]): Promise<void> {
    const own = asked.filter(({ sessionId }) => sessionId === session.sessionId);
    const last = own.at(-1);
    if (move === 'ask') {
      // The same questions again would be the same bundle.
      const ids = [`q${asked.length}`, 'other'].slice(0, 1 + (asked.length % 2));
      asked.push(await scenario.asked(ids, session));
    } else if (move === 'turn') {
      await scenario.openTurn(session, 'Go on.');
    } else if (move === 'say') {
      await scenario.services.messages.admit(UNSCOPED, session.sessionId, { content: 'And?' }, soon());
    } else if (move === 'complete') {
      await scenario.completeTurn(session, (await scenario.turns(session)).at(-1)?.id ?? '');
    } else if (move === 'restart') {
      await start();
    } else if (move === 'end') {
      if (asked.length > 5) await scenario.end(session);
    } else if (last !== undefined) {
      await settle(move, last);
    }
  }

  async function settle(move: string, last: Asked): Promise<void> {
    const ids = (await scenario.rows(last)).map((row) => row.questionId);
    if (move === 'refused') scenario.services.port.next(NOT_DELIVERED);
    if (move === 'unknown') scenario.services.port.next(UNKNOWN);
    if (move === 'cancel') return scenario.cancel(last);
    if (move === 'reject') return void (await scenario.reject(last));
    if (move !== 'discard') return void (await scenario.answer(last, ids));
    // Killed when the turn was reserved, or when it was attempted; an operator lets go of it.
    const reservedFor = await scenario.turns(last);
    if (reservedFor.length === 0) return;
    await reserve(last, reservedFor.length % 2 === 0 ? {} : { prompt_dispatch_attempted: true });
    await check([last]);
    await database.unitOfWork.run('discard', soon(), (tx) => deleteTurn(tx, 'reserved'));
  }

  async function check(asked: readonly Asked[]): Promise<void> {
    const active: string[] = [];
    for (const bundle of asked) if (await scenario.isActive(bundle)) active.push(bundle.pendingId);
    const pending = (await rows()).filter((row) => row.status === 'pending');
    const noted = pending.filter((row) => row.superseded_by !== null).map((row) => row.pending_id);
    expect(noted.filter((id) => active.includes(id))).toEqual([]);
    if (asked.length > 1) {
      expect(await listed()).toEqual([...active].sort());
      expect(await countActiveBundles(database.reader.within(soon()))).toBe(active.length);
    }
    const { rows: reserved } = await database.sql(
      `SELECT t.id FROM task_session_turns t WHERE ${engine.dialect.metadataFlag('t.metadata', 'prompt_dispatch_pending')}`,
    );
    if (reserved.length > 0) return;
    const { rows: unnoted } = await database.sql<{ id: string }>(
      `SELECT m.id FROM task_session_messages m WHERE m.superseded_by IS NULL AND m.type = 'clarification_request'
         AND ${engine.dialect.metadataText('m.metadata', 'status')} = 'pending'
         AND m.turn_id <> (SELECT t.id FROM task_session_turns t WHERE t.task_session_id = m.task_session_id
           ORDER BY t.started_at DESC, t.created_at DESC, t.id DESC LIMIT 1)`,
    );
    expect(unnoted).toEqual([]);
  }
});
