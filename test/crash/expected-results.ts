import { expect } from '@jest/globals';
import { RestCaller, type Json } from '../support/callers.js';
import { answersTo } from '../support/estate.js';
import { until } from '../support/until.js';
import type { ReceivedCall, WebhookReceiver } from '../support/webhook-receiver.js';
import type { Expected, Situation } from './hand-overs.js';
import { sessionRows } from './session-rows.js';
import { SECRET, type HeardBefore, type Victim } from './victim.js';

const FIRST = 'in my own words';
const SECOND = 'somebody else’s words';

/**
 * On the next server: what became of the bundle is what is expected, what was promised holds, and answering again either
 * wins, and is handed over once, or is told the winner.
 */
export class ExpectedResults {
  private readonly rest: RestCaller;

  private readonly databaseUrl: string;
  private readonly situation: Situation;
  private readonly before: HeardBefore;
  private readonly agent: WebhookReceiver | undefined;

  constructor(url: string, { databaseUrl, situation, before, agent }: Victim) {
    if (situation === undefined || before === undefined) throw new Error('it was never killed');
    this.rest = new RestCaller(url);
    this.databaseUrl = databaseUrl;
    this.situation = situation;
    this.before = before;
    this.agent = agent;
  }

  async expect(expected: Expected): Promise<void> {
    if (expected === 'answerable') await this.expectAnswerable();
    else await this.expectTerminal(expected);
    await this.expectNothingOwed();
    this.expectOneCallAnAnswer();
  }

  private async expectAnswerable(): Promise<void> {
    const { responder, agent } = this.before;
    expect(agent).toBeUndefined();
    // Only a refusal can have been heard: that it may be answered again.
    if (responder !== undefined) expect([responder.status, responder.json.retryable]).toEqual([500, true]);
    expect(await this.detail()).toMatchObject({ status: 'pending', active: true });
    expect(await this.turns()).toHaveLength(1);
    const second = await this.respondAgain();
    expect(second).toMatchObject({ success: true, claimed: true, delivered: true, status: 'answered' });
    expect(second.response.answers).toEqual([{ question_id: 'q1', selected_options: ['right'], custom_text: SECOND }]);
    if (this.agent !== undefined) await this.expectCalled(SECOND);
    else if (this.situation.siblingId === undefined) await this.expectNewTurn(SECOND);
    else await this.expectQueued(SECOND);
    expect(JSON.stringify(await this.messages())).not.toContain(FIRST);
    expect(await this.wait()).toMatchObject({ answers: second.response.answers, rejected: false });
  }

  private async expectTerminal(expected: Exclude<Expected, 'answerable'>): Promise<void> {
    const status = expected === 'declined' ? 'rejected' : 'answered';
    // Accepted now, and nothing left for the agent to fetch.
    if (expected === 'sent again') {
      await until(async () => (await this.detail()).delivered && (await this.mailbox()) === undefined);
    }
    const detail = await this.detail();
    expect(detail).toMatchObject({ status, active: false, delivered: true });
    if (expected === 'history') this.expectNothingPromised();
    else this.expectPromisesKept(detail.response);

    // Whoever comes now is told the winner, and changes nothing.
    const second = await this.respondAgain();
    expect(second).toEqual({ success: true, claimed: false, delivered: true, status, response: detail.response });
    if (status === 'answered') {
      expect(detail.response.answers).toEqual([{ question_id: 'q1', selected_options: ['left'], custom_text: FIRST }]);
    }
    switch (expected) {
      case 'handed over to the wait':
      case 'declined':
        expect(await this.wait()).toEqual(detail.response);
        expect(await this.turns()).toHaveLength(1);
        expect(await this.mailbox()).toBeUndefined();
        break;
      case 'history':
        expect(await this.wait()).toEqual(detail.response);
        expect(await this.turns()).toHaveLength(2);
        expect(await this.mailbox()).toBeUndefined();
        expect(await this.promptsWith(FIRST)).toEqual([]);
        break;
      case 'handed over in a new turn':
        await this.expectNewTurn(FIRST);
        break;
      case 'handed over to the queue':
        await this.expectQueued(FIRST);
        break;
      case 'handed over by a call':
        expect(this.calls).toHaveLength(1);
        await this.expectCalled(FIRST);
        break;
      case 'sent again':
        await this.expectCalled(FIRST);
        break;
    }
    expect(JSON.stringify(await this.messages())).not.toContain(SECOND);
  }

  /** What somebody had read by the time of the kill is still true. */
  private expectPromisesKept(response: Json): void {
    const { responder, agent } = this.before;
    if (responder !== undefined) {
      expect([responder.status, responder.json]).toEqual([
        200,
        {
          success: true,
          claimed: true,
          delivered: expect.any(Boolean),
          status: expect.any(String),
          response: expect.anything(),
        },
      ]);
      // A repetition has no reason (R2b).
      expect({ ...responder.json.response, reject_reason: '' }).toEqual(response);
    }
    if (agent === undefined) return;
    if ('json' in agent) expect({ ...agent.json, reject_reason: '' }).toEqual(response);
    else expect(agent.value.q1).toMatchObject({ selected_options: ['left'], custom_text: FIRST });
  }

  /** Only a refusal can have been heard, and that there is nothing to repeat. */
  private expectNothingPromised(): void {
    const { responder } = this.before;
    if (responder !== undefined) expect([responder.status, responder.json.retryable]).toEqual([500, false]);
  }

  /** One turn more, which the agent fetches once: the repeated wait of an agent that has it takes it out. */
  private async expectNewTurn(words: string): Promise<void> {
    const [, next, ...more] = await this.turns();
    expect(more).toEqual([]);
    const entry = await this.mailbox();
    expect(entry).toMatchObject({ turn: { id: next.id }, prompt: expect.stringContaining(words) });
    expect(await this.promptsWith(words)).toHaveLength(1);
    expect(await this.wait()).toMatchObject({ turn_id: next.id, answers: [{ custom_text: words }] });
    expect(await this.mailbox()).toBeUndefined();
    expect(await this.turns()).toHaveLength(2);
  }

  /** One turn more, of which the agent was told by its id, so that it has nothing to fetch. */
  private async expectCalled(words: string): Promise<void> {
    const [, next, ...more] = await this.turns();
    expect(more).toEqual([]);
    const [first] = this.callsWith(words);
    expect(first?.id).toBe(next.id);
    expect(first?.verified(SECRET)).toMatchObject({
      type: 'clarification.answered',
      turn_id: next.id,
      pending_id: this.situation.pendingId,
      prompt: expect.stringContaining(words),
      response: { answers: [{ custom_text: words }] },
    });
    expect(await this.promptsWith(words)).toHaveLength(1);
    expect(await this.mailbox()).toBeUndefined();
    expect(await this.wait()).toMatchObject({ turn_id: next.id, answers: [{ custom_text: words }] });
    expect(await this.turns()).toHaveLength(2);
  }

  /** However often it was called: one id and one text for one answer. */
  private expectOneCallAnAnswer(): void {
    for (const words of [FIRST, SECOND]) {
      const different = new Set(this.callsWith(words).map(({ id, body }) => `${id} ${body}`));
      expect(different.size).toBeLessThanOrEqual(1);
    }
    const counted = this.callsWith(FIRST).length + this.callsWith(SECOND).length;
    expect(counted).toBe(this.calls.length);
  }

  /** From before the kill on. */
  private get calls(): readonly ReceivedCall[] {
    return this.agent?.received ?? [];
  }

  private callsWith(words: string): readonly ReceivedCall[] {
    return this.calls.filter(({ body }) => body.includes(words));
  }

  /** It waits for the sibling, in the transcript, and has a turn of its own as soon as that is over. */
  private async expectQueued(words: string): Promise<void> {
    const { siblingId = '' } = this.situation;
    expect(await this.detail(siblingId)).toMatchObject({ status: 'pending', active: true });
    expect(await this.turns()).toHaveLength(1);
    expect((await this.promptsWith(words)).map(({ queued }) => queued)).toEqual([true]);
    await this.rest.send('POST', `/task-sessions/${this.situation.sessionId}/turns/${this.situation.turnId}/complete`);
    await this.rest.make('POST', `/clarification/${siblingId}/cancel`);
    if (this.agent === undefined) return this.expectNewTurn(words);
    await this.agent.until(1);
    await until(async () => (await this.mailbox()) === undefined);
    await this.expectCalled(words);
  }

  /** No row says that something is still to be seen to. */
  private async expectNothingOwed(): Promise<void> {
    const { turns, messages } = await sessionRows(this.databaseUrl);
    const owed = [...turns, ...messages].filter(
      ({ metadata, dispatch, queued_at: queuedAt }) =>
        /response_delivery_pending|prompt_dispatch/.test(String(metadata)) ||
        dispatch === 'owed' ||
        dispatch === 'unconfirmed' ||
        (queuedAt ?? null) !== null,
    );
    expect(owed).toEqual([]);
  }

  private async respondAgain(): Promise<Json> {
    const path = `/clarification/${this.situation.pendingId}/respond`;
    return this.rest.make('POST', path, answersTo(['q1'], SECOND, 'right'));
  }

  private detail(pendingId = this.situation.pendingId): Promise<Json> {
    return this.rest.make('GET', `/clarification/${pendingId}`);
  }

  private wait(): Promise<Json> {
    return this.rest.make('GET', `/clarification/${this.situation.pendingId}/wait?timeout=5`);
  }

  private async turns(): Promise<Json[]> {
    return (await this.rest.make('GET', `/task-sessions/${this.situation.sessionId}/turns`)).turns;
  }

  private async messages(): Promise<Json[]> {
    return (await this.rest.make('GET', `/task-sessions/${this.situation.sessionId}/messages?limit=200`)).messages;
  }

  private async promptsWith(words: string): Promise<Json[]> {
    const messages = await this.messages();
    return messages.filter(({ type, content }) => type === 'message' && content.includes(words));
  }

  private mailbox(): Promise<Json> {
    return this.rest.make('GET', `/task-sessions/${this.situation.sessionId}/mailbox`);
  }
}
