import { beforeAll, expect, it } from '@jest/globals';
import { CallerGoneError, Deadline } from '../../src/common/deadline.js';
import {
  InternalError,
  NotActiveError,
  NotFoundError,
  TemporarilyUnavailableError,
  ValidationError,
} from '../../src/common/domain-error.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { CommitOutcomeUnknownError } from '../../src/persistence/unit-of-work.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { ALICE, Scenario, soon, stagedScenario } from '../support/scenario.js';
import { failWith } from '../support/stage.js';
import { StatementRecorder } from '../support/statement-recorder.js';

const UNKNOWN = new CommitOutcomeUnknownError({ cause: new Error('the line went dead') });

describeEachEngine('the claim', (engine) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  const staged = () => stagedScenario(database, {});

  it('P1a: stores answered with one entry per question, or rejected with none', async () => {
    const scenario = new Scenario(database);
    const answered = await scenario.asked(['a', 'b']);
    await scenario.answer(answered, ['a', 'b']);
    expect((await scenario.rows(answered)).map(({ metadata }) => [metadata['status'], metadata['response']])).toEqual([
      ['answered', { question_id: 'a', selected_options: ['left'], custom_text: 'text of a' }],
      ['answered', { question_id: 'b', selected_options: ['left'], custom_text: 'text of b' }],
    ]);
    const rejected = await scenario.asked(['a', 'b']);
    await scenario.reject(rejected, 'no time');
    expect((await scenario.rows(rejected)).map(({ metadata }) => [metadata['status'], 'response' in metadata])).toEqual(
      [
        ['rejected', false],
        ['rejected', false],
      ],
    );
  });

  it('P1b: stores the normalised answer, which is what the winner and every later caller are told', async () => {
    const scenario = new Scenario(database);
    const asked = await scenario.asked(['a', 'b']);
    const won = await scenario.respond(asked, {
      answers: [
        { question_id: 'b', custom_text: '  said \n' },
        { question_id: 'a', selected_options: ['right', 'left', 'right'] },
      ],
    });
    const answers = [
      { question_id: 'a', selected_options: ['left', 'right'], custom_text: '' },
      { question_id: 'b', selected_options: [], custom_text: 'said' },
    ];
    expect(won.response.answers).toEqual(answers);
    expect((await scenario.rows(asked)).map((row) => row.response)).toEqual(answers);
    const lost = await scenario.answer(asked, ['a', 'b'], 'right');
    expect(JSON.stringify(lost.response)).toBe(JSON.stringify(won.response));
  });

  it('P2: a bundle that stops being active between validation and claim is not claimed', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    const held = stage.hold('bundle.claim', 'begin');
    const answering = scenario.answer(asked);
    await held.reached;
    await scenario.openTurn(asked);
    held.release();
    await expect(answering).rejects.toThrow(NotActiveError);
    expect(await scenario.statuses(asked)).toEqual(['pending']);
  });

  it('P2: a bundle that becomes active again between validation and claim is claimed', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    await scenario.plant(asked, 'q1', { status: 'answered', response_delivery_pending: true });
    const held = stage.hold('bundle.claim', 'begin');
    const rejecting = scenario.reject(asked);
    expect(await Promise.race([held.reached.then(() => 'claiming'), rejecting])).toBe('claiming');
    await scenario.restarted().services.recovery.reconcile();
    held.release();
    expect(await rejecting).toMatchObject({ claimed: true, status: 'rejected' });
  });

  it('R2/R1: the loser is told the winner’s decision; it writes nothing, publishes nothing, delivers nothing', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked(['a', 'b']);
    const won = await scenario.answer(asked, ['a', 'b']);
    expect(won).toMatchObject({ claimed: true, delivered: true, status: 'answered' });
    const before = await scenario.snapshot(asked);
    scenario.published.length = 0;
    stage.begun.length = 0;
    scenario.services.clock.advance(60_000);
    const lost = await scenario.reject(asked, 'too late');
    expect(lost).toEqual({ ...won, claimed: false });
    expect(await scenario.snapshot(asked)).toEqual(before);
    expect(scenario.published).toEqual([]);
    expect(stage.begun).toEqual(['bundle.claim']);
  });

  it('R2a: a claim that was not won reads the rows once more and does not try again', async () => {
    const recorder = new StatementRecorder();
    const scenario = new Scenario(database, { recorder });
    const asked = await scenario.asked();
    await scenario.answer(asked);
    recorder.clear();
    await scenario.answer(asked);
    const units = recorder.statements.map((statement) => statement.in);
    expect(units.slice(units.lastIndexOf('bundle.claim') + 1)).toEqual(['read']);
    expect(recorder.statements.filter(({ sql }) => sql.startsWith('UPDATE'))).toHaveLength(1);
  });

  it.each([
    ['superseded', (scenario: Scenario, asked: Awaited<ReturnType<Scenario['asked']>>) => scenario.openTurn(asked)],
    ['expired', (scenario: Scenario, asked: Awaited<ReturnType<Scenario['asked']>>) => scenario.end(asked)],
    ['cancelled', (scenario: Scenario, asked: Awaited<ReturnType<Scenario['asked']>>) => scenario.cancel(asked)],
  ])('R2: without a winner one that is %s is not active, and its rows stay as they are', async (_, close) => {
    const scenario = new Scenario(database);
    const asked = await scenario.asked(['a', 'b']);
    await close(scenario, asked);
    const before = await scenario.snapshot(asked);
    await expect(scenario.answer(asked, ['a', 'b'])).rejects.toThrow(NotActiveError);
    await expect(scenario.reject(asked)).rejects.toThrow(NotActiveError);
    expect(await scenario.snapshot(asked)).toEqual(before);
  });

  it('R2: a malformed bundle, with a row in another turn, is not active', async () => {
    const scenario = new Scenario(database);
    const asked = await scenario.asked(['a', 'b']);
    const other = await scenario.session();
    const turn = await scenario.openTurn(other);
    const [row] = await scenario.rows(asked);
    await database.sql('UPDATE task_session_messages SET task_session_id = $2, turn_id = $3 WHERE id = $1', [
      row?.id ?? '',
      other.sessionId,
      turn.id,
    ]);
    await expect(scenario.answer(asked, ['a', 'b'], 'left', UNSCOPED)).rejects.toThrow(NotActiveError);
    expect(await scenario.statuses(asked)).toEqual(['pending', 'pending']);
  });

  it('R2: a bundle that was deleted before the claim is not found', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    const held = stage.hold('bundle.claim', 'begin');
    const answering = scenario.answer(asked);
    await held.reached;
    await scenario.services.tasks.delete(ALICE, asked.taskId, soon());
    held.release();
    await expect(answering).rejects.toThrow(NotFoundError);
  });

  it('R2: a loser whose winner was rolled back meanwhile is told to send it again, not that it is too late', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    await scenario.plant(asked, 'q1', { status: 'answered', response_delivery_pending: true });
    // Between the claim that finds nothing to claim and the look at the winner.
    stage.do('bundle.claim', ['committed', () => scenario.restarted().services.recovery.reconcile()]);
    await expect(scenario.answer(asked)).rejects.toThrow(TemporarilyUnavailableError);
    expect(await scenario.answer(asked)).toMatchObject({ claimed: true });
  });

  it('R2b/L12: a mixed bundle is finished by its pending rows; winner and losers read the same, the rest is untouched', async () => {
    const scenario = new Scenario(database);
    const asked = await scenario.asked(['a', 'b', 'c']);
    const earlier = { question_id: 'a', selected_options: ['right'], custom_text: 'earlier' };
    await scenario.plant(asked, 'a', { status: 'answered', response: earlier });
    await scenario.plant(asked, 'c', { status: 'cancelled' });
    const [a, , c] = (await scenario.snapshotOf(asked)) as unknown[];
    scenario.services.clock.advance(1_000);
    const won = await scenario.answer(asked, ['a', 'b', 'c'], 'left');
    expect(won).toMatchObject({ claimed: true, status: 'answered' });
    expect(won.response.answers).toEqual([
      earlier,
      { question_id: 'b', selected_options: ['left'], custom_text: 'text of b' },
    ]);
    const after = (await scenario.snapshotOf(asked)) as unknown[];
    expect([after[0], after[2]]).toEqual([a, c]);
    expect(await scenario.reject(asked)).toEqual({ ...won, claimed: false });
  });

  it('R2b: the first resolved row decides, also against the claim that has just been won', async () => {
    const scenario = new Scenario(database);
    const asked = await scenario.asked(['a', 'b']);
    await scenario.plant(asked, 'a', { status: 'rejected' });
    const won = await scenario.answer(asked, ['a', 'b']);
    expect(won).toMatchObject({ claimed: true, status: 'rejected', response: { rejected: true } });
    expect(won.response.answers).toEqual([{ question_id: 'b', selected_options: ['left'], custom_text: 'text of b' }]);
    expect(await scenario.answer(asked, ['a', 'b'])).toEqual({ ...won, claimed: false });
  });

  it('R2c: a malformed submission to a resolved bundle is invalid, whoever won', async () => {
    const scenario = new Scenario(database);
    const asked = await scenario.asked();
    await scenario.answer(asked);
    await expect(scenario.respond(asked, { answers: [] })).rejects.toThrow(ValidationError);
    await expect(scenario.respond(asked, { answer: 'q1' })).rejects.toThrow(ValidationError);
  });

  it('R4: nothing is delivered or published, and nothing is seen, before the claim has committed', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    const waiting = await scenario.waiting(asked);
    scenario.published.length = 0;
    stage.begun.length = 0;
    const held = stage.hold('bundle.claim', 'commit');
    const answering = scenario.answer(asked);
    await held.reached;
    expect(await scenario.statuses(asked)).toEqual(['pending']);
    expect(stage.begun).toEqual(['bundle.claim']);
    expect(scenario.published).toEqual([]);
    held.release();
    expect(await answering).toMatchObject({ claimed: true, delivered: true });
    expect(await waiting.result).toMatchObject({ kind: 'response' });
  });

  it('R4: the private status of the claim is never committed, whether it succeeds or fails', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked(['a', 'b']);
    let marked = 0;
    stage.do('bundle.claim', [
      /^\s*UPDATE/,
      async () => {
        marked += 1;
        expect(await scenario.statuses(asked)).toEqual(['pending', 'pending']);
        throw new Error('killed between marking and answering');
      },
    ]);
    await expect(scenario.answer(asked, ['a', 'b'])).rejects.toThrow(InternalError);
    expect(marked).toBe(1);
    expect(await scenario.statuses(asked)).toEqual(['pending', 'pending']);
    await scenario.answer(asked, ['a', 'b']);
    expect(await scenario.statuses(asked)).toEqual(['answered', 'answered']);
  });

  it('R4a: a claim that fails is an internal error, safe to send again, and is not tried again', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    const before = await scenario.snapshot(asked);
    stage.begun.length = 0;
    stage.fail('bundle.claim', 'commit', new Error('boom'));
    await expect(scenario.answer(asked)).rejects.toMatchObject({ code: 'internal', retryable: true });
    expect(stage.begun).toEqual(['bundle.claim']);
    expect(await scenario.snapshot(asked)).toEqual(before);
  });

  it('R4a: with the claim in the rows a caller whose COMMIT got no reply goes on as the winner', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked(['a', 'b']);
    const waiting = await scenario.waiting(asked);
    stage.fail('bundle.claim', 'committed', UNKNOWN);
    const won = await scenario.reject(asked, 'not now');
    expect(won).toMatchObject({ claimed: true, delivered: true, status: 'rejected' });
    expect(await waiting.result).toMatchObject({ kind: 'response', response: won.response });
    expect(won.response.reject_reason).toBe('not now');
    expect(await scenario.owesHandOver(asked)).toBe(false);
  });

  it('R4a: the claim is known again although the bundle was detached between validation and claim', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    const [turn] = await scenario.turns(asked);
    stage.do(
      'bundle.claim',
      ['begin', async () => void (await scenario.completeTurn(asked, turn?.id ?? ''))],
      ['committed', failWith(UNKNOWN)],
    );
    expect(await scenario.answer(asked)).toMatchObject({ claimed: true });
    expect(await scenario.isDetached(asked)).toBe(true);
  });

  it('R4a: without the claim in the rows it did not happen, and sending it again wins', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    stage.fail('bundle.claim', 'commit', UNKNOWN);
    await expect(scenario.answer(asked)).rejects.toThrow(TemporarilyUnavailableError);
    expect(await scenario.statuses(asked)).toEqual(['pending']);
    expect(await scenario.answer(asked)).toMatchObject({ claimed: true });
  });

  it('R4a: somebody else’s equal answer of the same instant is not taken for one’s own', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    const handOver = stage.hold('delivery.hand-over', 'begin');
    let second: Promise<unknown> = Promise.resolve();
    stage.do(
      'bundle.claim',
      ['commit', failWith(UNKNOWN)],
      [
        'failed',
        () => {
          second = scenario.answer(asked);
          return handOver.reached;
        },
      ],
    );
    await expect(scenario.answer(asked)).rejects.toThrow(TemporarilyUnavailableError);
    handOver.release();
    expect(await second).toMatchObject({ claimed: true, delivered: true });
  });

  it('R4a/CALLER-GONE: the rows are read again even if the caller has gone and the budget is spent by then', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    const gone = new AbortController();
    const deadline = Deadline.after(300, { callerGone: gone.signal });
    stage.do('bundle.claim', [
      'committed',
      async () => {
        gone.abort();
        while (!deadline.isOver) await new Promise((resolve) => setTimeout(resolve, 10));
        throw UNKNOWN;
      },
    ]);
    const outcome = { rejected: true };
    const won = await scenario.services.resolver.resolveBundle(ALICE, asked.pendingId, outcome, {
      surface: 'rest',
      deadline,
    });
    expect(won).toMatchObject({ claimed: true, delivered: true });
    expect(await scenario.owesHandOver(asked)).toBe(false);
  });

  it('CALLER-GONE: for a caller that left before the claim committed nothing is claimed', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    const gone = new AbortController();
    const deadline = Deadline.after(10_000, { callerGone: gone.signal });
    stage.do('bundle.claim', ['commit', () => gone.abort()]);
    const how = { surface: 'rest', deadline } as const;
    await expect(
      scenario.services.resolver.resolveBundle(ALICE, asked.pendingId, { rejected: true }, how),
    ).rejects.toThrow(CallerGoneError);
    expect(await scenario.statuses(asked)).toEqual(['pending']);
  });

  it('R6: after a restart a loser is told the winner, and what is open can be answered', async () => {
    const scenario = new Scenario(database);
    const resolved = await scenario.asked();
    const open = await scenario.asked();
    const won = await scenario.answer(resolved);
    const next = scenario.restarted();
    expect(await next.reject(resolved)).toEqual({ ...won, claimed: false });
    expect(await next.answer(open)).toMatchObject({ claimed: true, delivered: true });
  });

  it('R9: a rejection looks the same to the agent, whoever made it and from wherever', async () => {
    const scenario = new Scenario(database);
    const seen = [];
    for (const [by, surface] of [
      [ALICE, 'rest'],
      [ALICE, 'mcp'],
      [UNSCOPED, 'rest'],
    ] as const) {
      const asked = await scenario.asked();
      const waiting = await scenario.waiting(asked);
      const outcome = { rejected: true, reject_reason: 'skip' };
      await scenario.services.resolver.resolveBundle(by, asked.pendingId, outcome, { surface, deadline: soon() });
      const result = await waiting.result;
      if (result.kind === 'response') seen.push({ ...result.response, pending_id: '' });
    }
    expect(seen).toHaveLength(3);
    expect(new Set(seen.map((response) => JSON.stringify(response))).size).toBe(1);
  });

  it('N6a: rows that changed in number between validation and claim abort it and nothing is changed', async () => {
    const { stage, scenario } = staged();
    const asked = await scenario.asked();
    const held = stage.hold('bundle.claim', 'begin');
    const answering = scenario.reject(asked);
    await held.reached;
    const [row] = await scenario.rows(asked);
    await database.sql(
      `INSERT INTO task_session_messages (id, task_session_id, task_id, turn_id, author_type, type, metadata, created_at, updated_at)
       SELECT id || '-more', task_session_id, task_id, turn_id, author_type, type, $2, created_at, updated_at
       FROM task_session_messages WHERE id = $1`,
      [row?.id ?? '', JSON.stringify({ ...row?.metadata, question_id: 'more' })],
    );
    const before = await scenario.snapshot(asked);
    held.release();
    await expect(answering).rejects.toMatchObject({ code: 'internal', retryable: true });
    expect(await scenario.snapshot(asked)).toEqual(before);
  });

  it.each([
    ['other', 'answer'],
    ['other', 'rejection'],
    ['', 'rejection'],
    [undefined, 'rejection'],
  ])(
    'N6a: a row whose question id became %p between validation and claim aborts its %s and nothing is changed',
    async (questionId, kind) => {
      const { stage, scenario } = staged();
      const asked = await scenario.asked(['a', 'b']);
      const held = stage.hold('bundle.claim', 'begin');
      const answering = kind === 'answer' ? scenario.answer(asked, ['a', 'b']) : scenario.reject(asked);
      await held.reached;
      await scenario.plant(asked, 'b', { question_id: questionId });
      const before = await scenario.snapshot(asked);
      held.release();
      await expect(answering).rejects.toMatchObject({ code: 'internal' });
      expect(await scenario.snapshot(asked)).toEqual(before);
    },
  );
});
