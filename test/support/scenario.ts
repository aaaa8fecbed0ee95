import { Deadline } from '../../src/common/deadline.js';
import type { Caller } from '../../src/identity/caller.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { agentTokenId, hashToken } from '../../src/identity/tokens.js';
import type { BundleRow } from '../../src/clarification/domain/bundle.js';
import type { Resolution } from '../../src/clarification/clarification-resolver.js';
import type { WaitOptions, WaitResult } from '../../src/clarification/delivery/bundle-wait.js';
import { findBundle } from '../../src/clarification/persistence/bundles.repository.js';
import type { DomainEvent } from '../../src/events/domain-event.js';
import type { ResumeSettings } from '../../src/tasks/domain/resume-settings.js';
import type { MessageView, SessionView, TurnView } from '../../src/tasks/views.js';
import type { TestDatabase } from './engines.js';
import { questionOf } from './question.js';
import { servicesOn, type ServiceOptions, type Services } from './services.js';
import { Stage } from './stage.js';
import { until } from './until.js';

export interface SessionOf {
  readonly taskId: string;
  readonly sessionId: string;
  /** The session's own agent, as its token proves it. */
  readonly agent: Caller;
}

export interface Asked extends SessionOf {
  readonly pendingId: string;
}

/** A wait that goes on in the background. */
export interface Waiting {
  readonly result: Promise<WaitResult>;
  /** Its connection closes. */
  readonly leave: () => void;
}

export const ALICE: Caller = { kind: 'user', userId: 'alice', userName: 'alice', tokenId: 'token-of-alice' };

export const WEBHOOK = {
  mode: 'webhook',
  url: 'https://agent.example/hook',
  secret: `whsec_${'A'.repeat(32)}`,
} as const;

export const soon = (): Deadline => Deadline.after(20_000);

/**
 * A scenario whose transactions are placed by hand. Unless told otherwise, an answer waits for no agent whose wait has
 * just ended.
 */
export function stagedScenario(
  database: TestDatabase,
  env: Readonly<Record<string, string>> = { REATTACH_MS: '0' },
): { readonly stage: Stage; readonly scenario: Scenario } {
  const stage = new Stage();
  return { stage, scenario: new Scenario(database, { wrap: stage.wrap, env }) };
}

/** Builds situations through the product's own services, and looks at what has become of them in the rows. */
export class Scenario {
  readonly services: Services;
  /** Everything that was published, in order. */
  readonly published: DomainEvent[] = [];

  constructor(
    readonly database: TestDatabase,
    options: ServiceOptions = {},
  ) {
    this.services = servicesOn(database, options);
    this.services.events.subscribe((event) => void this.published.push(event));
  }

  /** What a second process, started on the same database, is built from: nothing of this one's memory. */
  restarted(options: ServiceOptions = {}): Scenario {
    const next = new Scenario(this.database, options);
    next.services.clock.set(this.services.clock.now());
    return next;
  }

  async session(): Promise<SessionOf> {
    const task = await this.services.tasks.create(UNSCOPED, { title: 'A task', workspace_id: '' }, soon());
    return this.sessionOf(task.id);
  }

  async sessionOf(taskId: string, input: { readonly is_primary?: boolean } = {}): Promise<SessionOf> {
    const session = await this.services.sessions.create(UNSCOPED, taskId, input, soon());
    const tokenId = agentTokenId(hashToken(session.agent_token));
    const agent: Caller = { kind: 'agent', sessionId: session.id, tokenId };
    return { taskId, sessionId: session.id, agent };
  }

  /** A session whose agent is called. */
  async webhookSession(): Promise<SessionOf> {
    const session = await this.session();
    await this.moveWebhook(session, WEBHOOK);
    return session;
  }

  async moveWebhook(session: SessionOf, resume: ResumeSettings): Promise<void> {
    await this.database.sql('UPDATE task_sessions SET resume = $2 WHERE id = $1', [
      session.sessionId,
      JSON.stringify(resume),
    ]);
  }

  /** A bundle of these questions, in a session of its own unless one is given. */
  async asked(ids: readonly string[] = ['q1'], session?: SessionOf): Promise<Asked> {
    const home = session ?? (await this.session());
    const input = { session_id: home.sessionId, questions: ids.map(questionOf), context: 'because' };
    const { pending_id: pendingId } = await this.services.requests.create(home.agent, input, soon());
    return { ...home, pendingId };
  }

  answer(
    asked: Pick<Asked, 'pendingId'>,
    ids: readonly string[] = ['q1'],
    option: 'left' | 'right' = 'left',
    by: Caller = ALICE,
  ): Promise<Resolution> {
    const answers = ids.map((id) => ({ question_id: id, selected_options: [option], custom_text: `text of ${id}` }));
    return this.respond(asked, { answers }, by);
  }

  reject(asked: Pick<Asked, 'pendingId'>, reason = '', by: Caller = ALICE): Promise<Resolution> {
    return this.respond(asked, { rejected: true, ...(reason !== '' && { reject_reason: reason }) }, by);
  }

  respond(asked: Pick<Asked, 'pendingId'>, outcome: unknown, by: Caller = ALICE): Promise<Resolution> {
    return this.services.resolver.resolveBundle(by, asked.pendingId, outcome, { surface: 'rest', deadline: soon() });
  }

  /** Begins a wait and returns once it waits: registered, and attached if it is the agent's; or when it is over. */
  async waiting(asked: Asked, options: Partial<WaitOptions> & { readonly as?: Caller } = {}): Promise<Waiting> {
    const { as = asked.agent, ...rest } = options;
    const { waiters } = this.services;
    const before = waiters.size;
    const gone = new AbortController();
    let isOver = false;
    const result = this.services.wait.wait(as, asked.pendingId, { signal: gone.signal, ...rest });
    const over = (): void => void (isOver = true);
    result.then(over, over);
    await until(() => isOver || waiters.size > before);
    if (as.kind !== 'user') await until(async () => isOver || !(await this.isActive(asked)) || this.isAttached(asked));
    return { result, leave: () => gone.abort() };
  }

  private async isAttached(asked: Asked): Promise<boolean> {
    return (await this.stateOf(asked)) === 'waiting_for_input' && !(await this.isDetached(asked));
  }

  /** One look, as a wait with a time-out of 0 gives it. */
  look(asked: Asked, as: Caller = asked.agent): Promise<WaitResult> {
    return this.services.wait.wait(as, asked.pendingId, { timeoutMs: 0, signal: new AbortController().signal });
  }

  openTurn(session: SessionOf, prompt?: string): Promise<TurnView> {
    const input = prompt === undefined ? {} : { prompt };
    return this.services.turns.open(ALICE, session.sessionId, input, soon());
  }

  completeTurn(session: SessionOf, turnId: string): Promise<TurnView> {
    return this.services.turns.complete(session.agent, session.sessionId, turnId, soon());
  }

  end(session: SessionOf, state: 'completed' | 'failed' | 'cancelled' = 'completed'): Promise<SessionView> {
    return this.services.sessions.update(ALICE, session.sessionId, { state }, soon());
  }

  cancel(asked: Asked): Promise<void> {
    return this.services.requests.cancel(asked.agent, asked.pendingId, soon());
  }

  /** Rewrites what one question's row holds, as nothing in the product does; undefined removes a key. */
  async plant(
    asked: Pick<Asked, 'pendingId'>,
    questionId: string,
    patch: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const row = (await this.rows(asked)).find((candidate) => candidate.questionId === questionId);
    if (row === undefined) throw new Error(`no row asks ${questionId}`);
    await this.database.sql('UPDATE task_session_messages SET metadata = $2 WHERE id = $1', [
      row.id,
      JSON.stringify({ ...row.metadata, ...patch }),
    ]);
  }

  // What the rows say, read beside any transaction that is open.

  rows(asked: Pick<Asked, 'pendingId'>): Promise<BundleRow[]> {
    return findBundle(this.database.reader.within(soon()), asked.pendingId);
  }

  /** In D2 order. */
  async statuses(asked: Pick<Asked, 'pendingId'>): Promise<string[]> {
    return (await this.rows(asked)).map((row) => row.status);
  }

  async owesHandOver(asked: Pick<Asked, 'pendingId'>): Promise<boolean> {
    return (await this.rows(asked)).some((row) => row.deliveryPending);
  }

  async isDetached(asked: Pick<Asked, 'pendingId'>): Promise<boolean> {
    return (await this.rows(asked)).every((row) => row.agentDisconnected);
  }

  async isActive(asked: Asked): Promise<boolean> {
    return (await this.services.requests.get(UNSCOPED, asked.pendingId, soon())).active;
  }

  async stateOf(session: SessionOf): Promise<string> {
    return (await this.services.sessions.get(UNSCOPED, session.sessionId, soon())).state;
  }

  async turns(session: SessionOf): Promise<readonly TurnView[]> {
    return (await this.services.turns.list(UNSCOPED, session.sessionId, soon())).turns;
  }

  /** The transcript without the questions. */
  async messages(session: SessionOf): Promise<readonly MessageView[]> {
    const page = await this.services.messages.listOfSession(UNSCOPED, session.sessionId, { limit: 200 }, soon());
    return page.messages.filter((message) => message.type === 'message');
  }

  /** What the agent would fetch next. */
  mailbox(session: SessionOf): Promise<{ turn: TurnView; prompt: string } | undefined> {
    return this.services.mailbox.read(session.agent, session.sessionId, 0, new AbortController().signal);
  }

  /** Every row of the session as it is stored, to compare before and after. */
  async snapshot(session: SessionOf): Promise<unknown> {
    const of = (sql: string) => this.database.reader.query(soon(), sql, [session.sessionId]);
    return [
      (await of('SELECT * FROM task_sessions WHERE id = $1')).rows,
      (await of('SELECT * FROM task_session_turns WHERE task_session_id = $1 ORDER BY id')).rows,
      (await of('SELECT * FROM task_session_messages WHERE task_session_id = $1 ORDER BY id')).rows,
    ];
  }

  /** The rows of one bundle as they are stored, in the order of their questions' creation. */
  async snapshotOf(asked: Pick<Asked, 'pendingId'>): Promise<readonly unknown[]> {
    const ids = (await this.rows(asked)).map((row) => row.id);
    const stored = await Promise.all(
      ids.map((id) => this.database.reader.query(soon(), 'SELECT * FROM task_session_messages WHERE id = $1', [id])),
    );
    return stored.map(({ rows }) => rows[0]);
  }

  typesPublished(): string[] {
    return this.published.map((event) => event.type);
  }
}
