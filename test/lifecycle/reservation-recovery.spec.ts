import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { StartupError } from '../../src/common/startup-error.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { ALICE, Scenario, soon, WEBHOOK, type Asked } from '../support/scenario.js';
import { until } from '../support/until.js';

const both = ['a', 'b'];

/** How a process died while it handed an answer over by a webhook. */
interface Wreck {
  readonly isAttempted?: boolean;
  /** What the reservation says instead of what it should. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly isCompleted?: boolean;
}

describeEachEngine('recovery of turns that were reserved for an answer', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  // A start sees to every reservation there is.
  beforeEach(async () => {
    await database.sql('DELETE FROM task_sessions');
  });

  /** Plants exactly the rows that a dead process leaves, and no memory. */
  async function killed(wreck: Wreck = {}): Promise<{ scenario: Scenario; asked: Asked; turnId: string }> {
    const scenario = new Scenario(database);
    const asked = await scenario.asked(both, await scenario.webhookSession());
    for (const id of both) {
      const response = { question_id: id, selected_options: ['left'], custom_text: '' };
      await scenario.plant(asked, id, { status: 'answered', response, response_delivery_pending: true });
    }
    const rows = await scenario.rows(asked);
    const turnId = `reserved-${asked.pendingId}`;
    const at = scenario.services.clock.now();
    await database.sql(
      `INSERT INTO task_session_turns
         (id, task_session_id, task_id, started_at, completed_at, created_at, updated_at, metadata)
       VALUES ($1, $2, $3, '2026-01-31T09:00:01.000Z', $4, $5, $5, $6)`,
      [
        turnId,
        asked.sessionId,
        asked.taskId,
        wreck.isCompleted === true ? '2026-01-31T09:00:02.000Z' : null,
        at,
        JSON.stringify({
          prompt_dispatch_pending: true,
          ...(wreck.isAttempted === true && { prompt_dispatch_attempted: true }),
          prompt_dispatch_clarification_turn_id: rows[0]?.turnId,
          prompt_dispatch_clarification_pending_id: asked.pendingId,
          prompt_dispatch_clarification_message_ids: rows.map((row) => row.id),
          ...wreck.metadata,
        }),
      ],
    );
    return { scenario, asked, turnId };
  }

  /** Starts the next process, as far as recovery goes. */
  async function boot(scenario: Scenario): Promise<Scenario> {
    const next = scenario.restarted();
    next.services.clock.advance(60_000);
    await next.services.recovery.onApplicationBootstrap();
    await next.services.recovery.beforeApplicationShutdown();
    return next;
  }

  async function metadataOf(turnId: string): Promise<Record<string, unknown> | undefined> {
    const { rows } = await database.reader.query<{ metadata: string }>(
      soon(),
      'SELECT metadata FROM task_session_turns WHERE id = $1',
      [turnId],
    );
    return rows[0] && (JSON.parse(rows[0].metadata) as Record<string, unknown>);
  }

  it('RECOVER-RESERVATIONS/KILL: one that was never attempted goes, and exactly its rows are pending again', async () => {
    const { scenario, asked, turnId } = await killed();
    const next = await boot(scenario);
    expect(await metadataOf(turnId)).toBeUndefined();
    expect(await next.statuses(asked)).toEqual(['pending', 'pending']);
    expect(await next.isActive(asked)).toBe(true);
    expect(next.typesPublished()).toEqual([
      'session.message.updated',
      'session.message.updated',
      'clarification.restored',
    ]);
    expect((await boot(next)).published).toEqual([]);
    expect(await next.answer(asked, both, 'right')).toMatchObject({ claimed: true, delivered: true });
  });

  it('RECOVER-RESERVATIONS: a row that was terminal before the claim is not among them', async () => {
    const { scenario, asked } = await killed();
    const [first, second] = await scenario.rows(asked);
    await database.sql('UPDATE task_session_turns SET metadata = $2 WHERE id = $1', [
      `reserved-${asked.pendingId}`,
      JSON.stringify({
        prompt_dispatch_pending: '1',
        prompt_dispatch_clarification_turn_id: first?.turnId,
        prompt_dispatch_clarification_pending_id: asked.pendingId,
        prompt_dispatch_clarification_message_ids: [second?.id],
      }),
    ]);
    await scenario.plant(asked, 'a', { response_delivery_pending: undefined });
    const next = await boot(scenario);
    expect(await next.statuses(asked)).toEqual(['answered', 'pending']);
  });

  it('RECOVER-RESERVATIONS/HANDOVER-FORBIDDEN: in a session that has ended the answer stays as history', async () => {
    const { scenario, asked, turnId } = await killed();
    await scenario.end(asked);
    const next = await boot(scenario);
    expect(await metadataOf(turnId)).toBeUndefined();
    expect(await next.statuses(asked)).toEqual(['answered', 'answered']);
    expect(await next.owesHandOver(asked)).toBe(false);
  });

  it('RECOVER-RESERVATIONS/KILL: one that was attempted is published, into the mailbox as well, and its agent is called again', async () => {
    const { scenario, asked, turnId } = await killed({ isAttempted: true });
    const next = await boot(scenario);
    expect(await next.statuses(asked)).toEqual(['answered', 'answered']);
    expect(await next.owesHandOver(asked)).toBe(false);
    expect(await metadataOf(turnId)).toEqual({ resumed_from_pending_id: asked.pendingId });
    const [message] = await next.messages(asked);
    expect(message).toMatchObject({ turn_id: turnId, author_type: 'user', queued: false });
    expect(message?.content).toContain('Left of a (left)');
    expect(await next.mailbox(asked)).toMatchObject({ turn: { id: turnId }, prompt: message?.content });
    expect(next.typesPublished()).toEqual([
      'session.message.updated',
      'session.message.updated',
      'turn.completed',
      'session.message.added',
      'turn.started',
    ]);
    const detail = () => next.services.requests.get(UNSCOPED, asked.pendingId, soon());
    expect((await detail()).delivered).toBe(false);
    next.services.dispatcher.start();
    await until(async () => (await detail()).delivered);
    expect(next.services.port.calls).toMatchObject([{ id: turnId, url: WEBHOOK.url }]);
    expect(await next.mailbox(asked)).toBeUndefined();
    await next.services.dispatcher.beforeApplicationShutdown();
    const third = await boot(next);
    expect(third.published).toEqual([]);
    expect(third.services.port.calls).toEqual([]);
    expect(await third.turns(asked)).toHaveLength(2);
    expect(await third.answer(asked, both, 'right')).toMatchObject({ claimed: false, delivered: true });
  });

  it('RECOVER-RESERVATIONS: one that was attempted and completed is announced as both', async () => {
    const { scenario, turnId } = await killed({ isAttempted: true, isCompleted: true });
    const next = await boot(scenario);
    const about = next.published.filter((event) => 'turnId' in event && event.turnId === turnId);
    expect(about.map(({ type }) => type)).toEqual(['turn.started', 'turn.completed']);
  });

  it('RECOVER-RESERVATIONS: one with messages is kept, attempted or not', async () => {
    const { scenario, asked, turnId } = await killed();
    const at = scenario.services.clock.now();
    await database.sql(
      `INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, content, created_at, updated_at)
       VALUES ($1, $2, $3, $4, 'agent', 'On it.', $5, $5)`,
      [`m-${turnId}`, asked.sessionId, asked.taskId, turnId, at],
    );
    const next = await boot(scenario);
    expect(await next.statuses(asked)).toEqual(['answered', 'answered']);
    expect((await next.turns(asked)).map(({ id }) => id)).toContain(turnId);
    expect(await next.mailbox(asked)).toMatchObject({ turn: { id: turnId } });
  });

  it('RECOVER-RESERVATIONS: what was published and not announced is announced at the next start, once', async () => {
    const { scenario, asked, turnId } = await killed({ isAttempted: true });
    await database.sql('UPDATE task_session_turns SET metadata = $2 WHERE id = $1', [
      turnId,
      JSON.stringify({ resumed_from_pending_id: asked.pendingId, prompt_dispatch_start_event_pending: true }),
    ]);
    const next = await boot(scenario);
    expect(next.published).toContainEqual({
      type: 'turn.started',
      taskId: asked.taskId,
      sessionId: asked.sessionId,
      turnId,
    });
    expect(await metadataOf(turnId)).toEqual({ resumed_from_pending_id: asked.pendingId });
    expect((await boot(next)).published).toEqual([]);
  });

  it('RECOVER-RESERVATIONS: a session that pulls by now is not called, and finds it in its mailbox', async () => {
    const { scenario, asked, turnId } = await killed({ isAttempted: true });
    await scenario.moveWebhook(asked, { mode: 'pull' });
    const next = await boot(scenario);
    next.services.dispatcher.look();
    await next.services.dispatcher.beforeApplicationShutdown();
    expect(next.services.port.calls).toEqual([]);
    expect(await next.mailbox(asked)).toMatchObject({ turn: { id: turnId } });
  });

  it('RECOVER-RESERVATIONS: the reconciliation leaves alone what a hand-over of this process owns', async () => {
    const scenario = new Scenario(database);
    const asked = await scenario.asked(both, await scenario.webhookSession());
    const held = scenario.services.port.holdNext();
    const answering = scenario.answer(asked, both);
    await held.called;
    await scenario.services.recovery.reconcile();
    expect(await scenario.owesHandOver(asked)).toBe(true);
    expect(await scenario.turns(asked)).toHaveLength(1);
    held.end({ kind: 'accepted' });
    expect(await answering).toMatchObject({ delivered: true });
  });

  it('QUEUE: what waited behind a reservation is released when that is withdrawn and the answer stays history', async () => {
    const { scenario, asked } = await killed({ metadata: { prompt_dispatch_clarification_message_ids: ['gone'] } });
    const [first] = await scenario.turns(asked);
    await scenario.completeTurn(asked, first?.id ?? '');
    await scenario.services.messages.admit(ALICE, asked.sessionId, { content: 'Hello?' }, soon());
    for (const id of both) await scenario.plant(asked, id, { response_delivery_pending: undefined });
    const next = await boot(scenario);
    expect(await next.messages(asked)).toMatchObject([{ content: 'Hello?', queued: false }]);
  });

  it('QUEUE: prompts that nothing holds back any more are released at start, whatever somebody wrote beside them', async () => {
    const scenario = new Scenario(database);
    const session = await scenario.session();
    const first = await scenario.openTurn(session, 'Go.');
    await scenario.services.messages.admit(ALICE, session.sessionId, { content: 'And on.' }, soon());
    await database.sql("UPDATE task_session_messages SET metadata = 'null' WHERE queued_at IS NOT NULL");
    // As an operator's hand may complete it, who discards what it was for.
    await database.sql('UPDATE task_session_turns SET completed_at = $2 WHERE id = $1', [
      first.id,
      scenario.services.clock.now(),
    ]);
    const next = await boot(scenario);
    expect((await next.messages(session)).map(({ queued }) => queued)).toEqual([false, false]);
    expect(await next.turns(session)).toHaveLength(2);
    expect((await boot(next)).published).toEqual([]);
  });

  describe('that cannot be read', () => {
    const LIST = 'prompt_dispatch_clarification_message_ids';

    it.each([
      ['no list', { [LIST]: 'a' }],
      ['no list at all', { [LIST]: undefined }],
      ['an object', { [LIST]: { 0: 'a' } }],
      ['an empty text in it', { [LIST]: ['a', ''] }],
      ['a number in it', { [LIST]: [1] }],
      ['no bundle', { prompt_dispatch_clarification_pending_id: 7 }],
    ])(
      'RECOVER-MALFORMED: %s fails the start with one line that names the turn, and changes nothing',
      async (_, metadata) => {
        const healthy = await killed();
        const { scenario, asked, turnId } = await killed({ metadata });
        const before = [await scenario.snapshot(asked), await scenario.snapshot(healthy.asked)];
        const failed: unknown = await boot(scenario).catch((error: unknown) => error);
        expect(failed).toBeInstanceOf(StartupError);
        expect((failed as Error).message).toContain(turnId);
        expect((failed as Error).message).not.toContain('\n');
        expect([await scenario.snapshot(asked), await scenario.snapshot(healthy.asked)]).toEqual(before);
      },
    );

    it('RECOVER-MALFORMED: while the server runs it holds up nothing else', async () => {
      const { scenario, asked } = await killed({ metadata: { [LIST]: 'a' } });
      const healthy = await killed();
      await scenario.services.recovery.reconcile();
      expect(await healthy.scenario.isActive(healthy.asked)).toBe(true);
      expect(await scenario.turns(asked)).toHaveLength(1);
      expect(await scenario.owesHandOver(asked)).toBe(true);
    });
  });
});
