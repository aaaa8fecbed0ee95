import { beforeAll, describe, expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { plusMilliseconds } from '../../src/common/clock.js';
import { ConflictError, NotActiveError, NotFoundError } from '../../src/common/domain-error.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { SESSION_STATES, TERMINAL_SESSION_STATES } from '../../src/tasks/domain/session-state.js';
import { barrier } from '../support/barrier.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { questionOf } from '../support/question.js';
import { ALICE, Scenario, soon, type Asked, type SessionOf, stagedScenario } from '../support/scenario.js';
import { Stage } from '../support/stage.js';

describeEachEngine('sessions and turns', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  const staged = () => stagedScenario(database);
  const terminal: readonly string[] = TERMINAL_SESSION_STATES;

  /** A turn that was reserved for a dispatch and is not published. */
  async function reserve(scenario: Scenario, session: SessionOf, metadata: object, startedAt: string): Promise<string> {
    const id = `reserved-${session.sessionId}`;
    await scenario.database.sql(
      `INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, metadata, created_at, updated_at)
       VALUES ($1, $2, $3, $4, $5, $4, $4)`,
      [id, session.sessionId, session.taskId, startedAt, JSON.stringify(metadata)],
    );
    return id;
  }

  describe('states', () => {
    const move = (scenario: Scenario, session: SessionOf, state: (typeof SESSION_STATES)[number]) =>
      scenario.services.sessions.update(ALICE, session.sessionId, { state }, soon());

    it('SESSION-STATES: any state may follow one that is not final, and no other ever follows a final one', async () => {
      const { scenario } = staged();
      for (const from of SESSION_STATES) {
        for (const to of SESSION_STATES) {
          const session = await scenario.session();
          await move(scenario, session, from);
          const moving = move(scenario, session, to);
          if (terminal.includes(from) && to !== from) await expect(moving).rejects.toThrow(ConflictError);
          else expect(await moving).toMatchObject({ state: to });
          expect(await scenario.stateOf(session)).toBe(terminal.includes(from) ? from : to);
        }
      }
    });

    it('SESSION-STATES: a final state says when, and resume settings can still be changed', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      expect(await move(scenario, session, 'failed')).toMatchObject({ completed_at: scenario.services.clock.now() });
      const input = { resume: { mode: 'pull' as const } };
      expect(await scenario.services.sessions.update(ALICE, session.sessionId, input, soon())).toMatchObject(input);
    });

    it.each(TERMINAL_SESSION_STATES)(
      'EXPIRE: entering %s expires the current pending rows in the same transaction',
      async (state) => {
        const { scenario, stage } = staged();
        const asked = await scenario.asked(['a', 'b', 'c']);
        await scenario.plant(asked, 'a', { status: 'answered' });
        await scenario.plant(asked, 'c', { status: '' });
        const [first] = await scenario.snapshotOf(asked);
        scenario.services.clock.advance(1_000);
        const held = stage.hold('session.update', 'commit');
        const ending = scenario.end(asked, state);
        await held.reached;
        expect([await scenario.stateOf(asked), await scenario.statuses(asked)]).toEqual([
          'running',
          ['answered', 'pending', ''],
        ]);
        held.release();
        await ending;
        expect([await scenario.stateOf(asked), await scenario.statuses(asked)]).toEqual([
          state,
          ['answered', 'expired', 'expired'],
        ]);
        expect((await scenario.snapshotOf(asked))[0]).toEqual(first);
        expect(scenario.typesPublished().slice(-4)).toEqual([
          'session.message.updated',
          'session.message.updated',
          'clarification.expired',
          'session.state_changed',
        ]);
      },
    );

    it('EXPIRE: if it fails the session has not ended either', async () => {
      const { scenario, stage } = staged();
      const asked = await scenario.asked();
      const before = await scenario.snapshot(asked);
      stage.fail('session.update', 'commit', new Error('boom'));
      await expect(scenario.end(asked)).rejects.toThrow('boom');
      expect(await scenario.snapshot(asked)).toEqual(before);
      expect(scenario.typesPublished()).not.toContain('clarification.expired');
    });

    it('EXPIRE/ISOLATION: superseded rows and other sessions’ bundles stay as they are', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const superseded = await scenario.asked(['q1'], session);
      await scenario.openTurn(session);
      const elsewhere = await scenario.asked(['q1'], await scenario.sessionOf(session.taskId));
      const before = [await scenario.snapshotOf(superseded), await scenario.snapshotOf(elsewhere)];
      await scenario.end(session);
      expect([await scenario.snapshotOf(superseded), await scenario.snapshotOf(elsewhere)]).toEqual(before);
      expect(await scenario.isActive(elsewhere)).toBe(true);
    });

    it('EXPIRE/DETACH/X: they come to their end although the caller has gone', async () => {
      const { scenario, stage } = staged();
      for (const [name, act] of [
        [
          'session.update',
          (asked: Asked, deadline: Deadline) =>
            scenario.services.sessions.update(ALICE, asked.sessionId, { state: 'completed' }, deadline),
        ],
        [
          'turn.complete',
          async (asked: Asked, deadline: Deadline) => {
            const [turn] = await scenario.turns(asked);
            return scenario.services.turns.complete(asked.agent, asked.sessionId, turn?.id ?? '', deadline);
          },
        ],
        [
          'bundle.cancel',
          (asked: Asked, deadline: Deadline) =>
            scenario.services.requests.cancel(asked.agent, asked.pendingId, deadline),
        ],
      ] as const) {
        const asked = await scenario.asked();
        const gone = new AbortController();
        stage.do(name, ['begin', () => gone.abort()]);
        await act(asked, Deadline.after(5_000, { callerGone: gone.signal }));
        const [row] = await scenario.rows(asked);
        expect(row?.agentDisconnected === true || row?.status !== 'pending').toBe(true);
      }
    });
  });

  describe('turns', () => {
    it('OPEN-TURN: completes its predecessor, makes the session running, and keeps the prompt as its first message', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const first = await scenario.openTurn(session);
      await scenario.services.sessions.update(ALICE, session.sessionId, { state: 'waiting_for_input' }, soon());
      scenario.services.clock.advance(5_000);
      scenario.published.length = 0;
      const second = await scenario.openTurn(session, 'go on');
      expect(await scenario.turns(session)).toEqual([
        { ...first, completed_at: scenario.services.clock.now(), updated_at: scenario.services.clock.now() },
        second,
      ]);
      expect(await scenario.stateOf(session)).toBe('running');
      expect(await scenario.messages(session)).toMatchObject([
        { content: 'go on', turn_id: second.id, author_type: 'user', author_id: 'alice', queued: false },
      ]);
      expect(scenario.typesPublished()).toEqual([
        'turn.completed',
        'turn.started',
        'session.message.added',
        'session.state_changed',
      ]);
    });

    it('OPEN-TURN: none is opened in a session that has ended', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      await scenario.end(session);
      await expect(scenario.openTurn(session)).rejects.toThrow(ConflictError);
      expect(await scenario.turns(session)).toEqual([]);
    });

    it('TURN-TIME: a new turn starts 1 ms after the newest when the clock stepped back or stands still', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const first = await scenario.openTurn(session);
      const second = await scenario.openTurn(session);
      scenario.services.clock.advance(-3_600_000);
      const third = await scenario.openTurn(session);
      scenario.services.clock.advance(7_200_000);
      const fourth = await scenario.openTurn(session);
      expect([second, third].map((turn) => turn.started_at)).toEqual([
        plusMilliseconds(first.started_at, 1),
        plusMilliseconds(first.started_at, 2),
      ]);
      expect(fourth.started_at).toBe(scenario.services.clock.now());
      expect((await scenario.turns(session)).map(({ id }) => id)).toEqual(
        [first, second, third, fourth].map(({ id }) => id),
      );
    });

    it('TURN-TIME/SUPERSEDE: a question of a turn opened under a clock that stepped back is current, the older one is not', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const older = await scenario.asked(['a'], session);
      scenario.services.clock.advance(-3_600_000);
      await scenario.openTurn(session);
      const newer = await scenario.asked(['b'], session);
      expect([await scenario.isActive(older), await scenario.isActive(newer)]).toEqual([false, true]);
    });

    it('SUPERSEDE: rewrites nothing, and the older question is never listed, answered or cancelled again and blocks nothing', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked(['a', 'b']);
      const before = await scenario.snapshotOf(asked);
      scenario.services.clock.advance(1_000);
      const turn = await scenario.openTurn(asked);
      // Apart from a note for the listing, which decides nothing.
      const noted = before.map((row) => ({ ...(row as object), superseded_by: turn.id }));
      expect(await scenario.snapshotOf(asked)).toEqual(noted);
      const { bundles } = await scenario.services.listing.list(UNSCOPED, { limit: 200 }, soon());
      expect(bundles.map((bundle) => bundle.pending_id)).not.toContain(asked.pendingId);
      await expect(scenario.answer(asked, ['a', 'b'])).rejects.toThrow(NotActiveError);
      await expect(scenario.cancel(asked)).rejects.toThrow(NotActiveError);
      expect(await scenario.services.tasks.complete(ALICE, asked.taskId, soon())).toMatchObject({
        state: 'completed',
        task_pending_action: null,
      });
      await scenario.end(asked);
      expect(await scenario.snapshotOf(asked)).toEqual(noted);
    });

    it.each([
      ['true', true],
      ['"true"', 'true'],
      ['1', 1],
      ['"1"', '1'],
    ])(
      'CURRENT-TURN: a pure reservation (flag %s) is hidden and never current, and the next turn waits for it and starts after it',
      async (_, flag) => {
        const { scenario } = staged();
        const asked = await scenario.asked();
        const [current] = await scenario.turns(asked);
        const later = plusMilliseconds(scenario.services.clock.now(), 10_000);
        const reserved = await reserve(scenario, asked, { prompt_dispatch_pending: flag }, later);
        expect(await scenario.turns(asked)).toEqual([current]);
        expect(await scenario.isActive(asked)).toBe(true);
        await expect(scenario.completeTurn(asked, reserved)).rejects.toThrow(NotFoundError);
        const opening = scenario.openTurn(asked);
        await scenario.services.messages.admit(ALICE, asked.sessionId, { content: 'hello' }, soon());
        expect(await scenario.turns(asked)).toEqual([current]);
        await database.sql("UPDATE task_session_turns SET metadata = '{}' WHERE id = $1", [reserved]);
        expect((await opening).started_at).toBe(plusMilliseconds(later, 1));
      },
    );

    it.each([
      ['that was attempted', { prompt_dispatch_pending: true, prompt_dispatch_attempted: '1' }, 'hidden'],
      ['that is none (false)', { prompt_dispatch_pending: false }, 'shown'],
      ['that is none ("yes")', { prompt_dispatch_pending: 'yes' }, 'shown'],
      ['that is none (1.0 as text)', { prompt_dispatch_pending: '1.0' }, 'shown'],
    ])(
      'CURRENT-TURN: a reservation %s is current and supersedes, though it may be hidden',
      async (_, metadata, shown) => {
        const { scenario } = staged();
        const asked = await scenario.asked();
        await reserve(scenario, asked, metadata, plusMilliseconds(scenario.services.clock.now(), 10_000));
        expect(await scenario.turns(asked)).toHaveLength(shown === 'shown' ? 2 : 1);
        expect(await scenario.isActive(asked)).toBe(false);
        await expect(scenario.answer(asked)).rejects.toThrow(NotActiveError);
      },
    );

    it('CURRENT-TURN: a reservation that a message refers to is current; deleting messages never moves it back', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const first = await scenario.openTurn(asked, 'go on');
      expect(await scenario.isActive(asked)).toBe(false);
      await database.sql('DELETE FROM task_session_messages WHERE turn_id = $1', [first.id]);
      expect(await scenario.isActive(asked)).toBe(false);
    });

    it('CURRENT-TURN: of turns that started together the one created later counts, then the greater id', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const at = scenario.services.clock.now();
      for (const [id, createdAt] of [
        ['b', plusMilliseconds(at, 1)],
        ['B', plusMilliseconds(at, 1)],
        ['z', at],
      ]) {
        await database.sql(
          `INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
           VALUES ($1, $2, $3, $4, $5, $5)`,
          [`${id}-${session.sessionId}`, session.sessionId, session.taskId, at, createdAt ?? at],
        );
      }
      const asked = await scenario.asked(['q1'], session);
      expect((await scenario.rows(asked)).map((row) => row.turnId)).toEqual([`b-${session.sessionId}`]);
    });

    it('TURNS/DETACH: completing is idempotent, makes the session wait for input, and detaches only in the current turn', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked();
      const [turn] = await scenario.turns(asked);
      const done = await scenario.completeTurn(asked, turn?.id ?? '');
      expect(done.completed_at).toBe(scenario.services.clock.now());
      expect(await scenario.stateOf(asked)).toBe('waiting_for_input');
      expect(await scenario.isDetached(asked)).toBe(true);
      const before = await scenario.snapshot(asked);
      scenario.services.clock.advance(1_000);
      scenario.published.length = 0;
      expect(await scenario.completeTurn(asked, turn?.id ?? '')).toEqual(done);
      expect([await scenario.snapshot(asked), scenario.published]).toEqual([before, []]);
    });

    it('TURNS: another session’s turn is not found', async () => {
      const { scenario } = staged();
      const [mine, other] = [await scenario.session(), await scenario.session()];
      const turn = await scenario.openTurn(other);
      await expect(scenario.completeTurn(mine, turn.id)).rejects.toThrow(NotFoundError);
      await expect(scenario.completeTurn(mine, 'none')).rejects.toThrow(NotFoundError);
    });

    it('TURNS: completing the turn of a session that has ended changes nothing else', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const turn = await scenario.openTurn(session);
      await scenario.end(session);
      await scenario.completeTurn(session, turn.id);
      expect(await scenario.stateOf(session)).toBe('completed');
    });
  });

  describe('the primary session', () => {
    const primaries = async (scenario: Scenario, taskId: string) =>
      (await scenario.services.sessions.listOfTask(UNSCOPED, taskId, soon())).sessions.map((one) => one.is_primary);

    it('SESSIONS: the first is primary unless said otherwise, and a new one demotes the old', async () => {
      const { scenario } = staged();
      const task = await scenario.services.tasks.create(UNSCOPED, { title: 'A task', workspace_id: '' }, soon());
      const seen: boolean[][] = [];
      for (const input of [{}, {}, { is_primary: true }, { is_primary: false }]) {
        scenario.services.clock.advance(1);
        await scenario.sessionOf(task.id, input);
        seen.push(await primaries(scenario, task.id));
      }
      expect(seen).toEqual([[true], [true, false], [false, false, true], [false, false, true, false]]);
      const other = await scenario.services.tasks.create(UNSCOPED, { title: 'Another', workspace_id: '' }, soon());
      await scenario.sessionOf(other.id, { is_primary: false });
      expect(await primaries(scenario, other.id)).toEqual([false]);
    });

    it('SESSIONS/SERIAL: of many created at one instant exactly one is primary', async () => {
      const task = await new Scenario(database).services.tasks.create(UNSCOPED, { title: 'A task' }, soon());
      const together = barrier(8);
      const stage = new Stage();
      for (let caller = 0; caller < 8; caller += 1) stage.do('session.create', ['begin', together]);
      const scenario = new Scenario(database, { wrap: stage.wrap });
      await Promise.all(
        Array.from({ length: 8 }, (_, index) => scenario.sessionOf(task.id, index < 4 ? {} : { is_primary: true })),
      );
      expect((await primaries(scenario, task.id)).filter(Boolean)).toHaveLength(1);
    });
  });

  describe('asking', () => {
    const ask = (scenario: Scenario, session: SessionOf, context = 'because', ids = ['a', 'b']) =>
      scenario.services.requests.create(
        session.agent,
        { session_id: session.sessionId, questions: ids.map(questionOf), context },
        soon(),
      );

    it('CREATE-SESSION: a session without a turn gets its first one, which the agent does not find in its mailbox', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      await ask(scenario, session);
      expect(await scenario.turns(session)).toHaveLength(1);
      expect(await scenario.mailbox(session)).toBeUndefined();
      await ask(scenario, session, 'another');
      expect(await scenario.turns(session)).toHaveLength(1);
    });

    it('CREATE-SESSION: none is asked in a session that has ended, or ends before it is written', async () => {
      const { scenario, stage } = staged();
      const session = await scenario.session();
      const held = stage.hold('bundle.create', 'begin');
      const asking = ask(scenario, session);
      await held.reached;
      await scenario.end(session);
      const before = await scenario.snapshot(session);
      held.release();
      await expect(asking).rejects.toThrow(ConflictError);
      await expect(ask(scenario, session)).rejects.toThrow(ConflictError);
      expect(await scenario.snapshot(session)).toEqual(before);
    });

    it('CREATE-DEDUP: the same again in the same turn is that bundle and writes and publishes nothing, also after a restart', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const first = await ask(scenario, session);
      const before = await scenario.snapshot(session);
      scenario.services.clock.advance(1_000);
      scenario.published.length = 0;
      expect(await ask(scenario, session)).toEqual(first);
      const next = scenario.restarted();
      expect(await ask(next, session)).toEqual(first);
      expect(await scenario.snapshot(session)).toEqual(before);
      expect([...scenario.published, ...next.published]).toEqual([]);
    });

    it('CREATE-DEDUP: other questions, another order or another context are another bundle', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const bundles = [
        await ask(scenario, session),
        await ask(scenario, session, 'other'),
        await ask(scenario, session, 'because', ['b', 'a']),
        await ask(scenario, session, 'because', ['a']),
      ];
      expect(new Set(bundles.map((bundle) => bundle.pending_id)).size).toBe(4);
    });

    it('CREATE-DEDUP: one whose hand-over is under way is found too; one that is settled, cancelled or superseded is asked anew', async () => {
      const { scenario, stage } = staged();
      const session = await scenario.session();
      const { pending_id: pendingId } = await ask(scenario, session);
      const asked = { ...session, pendingId };
      const held = stage.hold('delivery.hand-over', 'begin');
      const rejecting = scenario.reject(asked);
      await held.reached;
      expect(await ask(scenario, session)).toEqual({ pending_id: pendingId });
      held.release();
      await rejecting;
      const second = await ask(scenario, session);
      await scenario.cancel({ ...session, pendingId: second.pending_id });
      const third = await ask(scenario, session);
      await scenario.openTurn(session);
      const fourth = await ask(scenario, session);
      expect(new Set([pendingId, second.pending_id, third.pending_id, fourth.pending_id]).size).toBe(4);
    });
  });

  describe('cancelling', () => {
    it('X: turns the pending rows of an active bundle to cancelled and resumes nobody', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked(['a', 'b']);
      await scenario.plant(asked, 'a', { status: 'answered' });
      await scenario.look(asked);
      const [first] = await scenario.snapshotOf(asked);
      scenario.services.clock.advance(1_000);
      await scenario.cancel(asked);
      expect(await scenario.statuses(asked)).toEqual(['answered', 'cancelled']);
      expect((await scenario.snapshotOf(asked))[0]).toEqual(first);
      expect((await scenario.rows(asked))[1]?.updatedAt).toBe(scenario.services.clock.now());
      expect(await scenario.turns(asked)).toHaveLength(1);
      expect(scenario.typesPublished().at(-1)).toBe('clarification.cancelled');
    });

    it('X: anything else is not active and stays as it is', async () => {
      const { scenario, stage } = staged();
      const [cancelled, answered, claimed, superseded, expired] = await Promise.all(
        Array.from({ length: 5 }, () => scenario.asked()),
      );
      if (!cancelled || !answered || !claimed || !superseded || !expired) throw new Error('five were asked');
      await scenario.cancel(cancelled);
      await scenario.answer(answered);
      const held = stage.hold('delivery.hand-over', 'begin');
      const answering = scenario.answer(claimed);
      await held.reached;
      await scenario.openTurn(superseded);
      await scenario.end(expired);
      for (const asked of [cancelled, answered, claimed, superseded, expired]) {
        const before = await scenario.snapshot(asked);
        await expect(scenario.cancel(asked)).rejects.toThrow(NotActiveError);
        expect(await scenario.snapshot(asked)).toEqual(before);
      }
      held.release();
      await answering;
    });

    it('X/L16: is the way out for a bundle that can be neither listed nor answered', async () => {
      const { scenario } = staged();
      const asked = await scenario.asked(['a', 'b']);
      await scenario.plant(asked, 'b', { question_id: undefined });
      expect(await scenario.isActive(asked)).toBe(true);
      await expect(scenario.services.tasks.complete(ALICE, asked.taskId, soon())).rejects.toThrow(ConflictError);
      await scenario.cancel(asked);
      expect(await scenario.statuses(asked)).toEqual(['cancelled', 'cancelled']);
      expect(await scenario.services.tasks.complete(ALICE, asked.taskId, soon())).toMatchObject({ state: 'completed' });
    });

    it('ISOLATION: cancelling, expiring or resolving one bundle touches no other of the same turn', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const kept = await scenario.asked(['kept'], session);
      const before = await scenario.snapshotOf(kept);
      scenario.services.clock.advance(1_000);
      await scenario.cancel(await scenario.asked(['a'], session));
      await scenario.answer(await scenario.asked(['b'], session), ['b']);
      await scenario.reject(await scenario.asked(['c'], session));
      expect(await scenario.snapshotOf(kept)).toEqual(before);
      expect(await scenario.isActive(kept)).toBe(true);
    });

    it('WORKFLOW-GUARD: a task cannot be completed while any of its sessions has an active bundle', async () => {
      const { scenario } = staged();
      const session = await scenario.session();
      const asked = await scenario.asked(['a'], await scenario.sessionOf(session.taskId));
      await expect(scenario.services.tasks.complete(ALICE, session.taskId, soon())).rejects.toThrow(ConflictError);
      await scenario.cancel(asked);
      const done = await scenario.services.tasks.complete(ALICE, session.taskId, soon());
      expect(await scenario.services.tasks.complete(ALICE, session.taskId, soon())).toEqual(done);
    });
  });
});
