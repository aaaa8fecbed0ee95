import { beforeAll, expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { DomainError } from '../../src/common/domain-error.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { plantRows, type PlantedMessage, type PlantedRows } from '../support/plant-rows.js';
import { servicesOn, type Services } from '../support/services.js';

const within = () => Deadline.after(20_000);

/** A bundle of two questions in the first turn of its own session, and what is different about it. */
interface State {
  readonly title: string;
  readonly isActive: boolean;
  /** Where it is not as `isActive` says: L16 bundles are active and neither listed nor claimed. */
  readonly isListed?: boolean;
  readonly claim?: 'claimed' | 'lost' | 'not_active' | 'validation_failed' | 'not_found';
  readonly session?: string;
  /** The statuses of the two questions; undefined leaves the key out. Default: both pending. */
  readonly statuses?: readonly [unknown, unknown];
  readonly questionIds?: readonly [unknown, unknown];
  readonly pendingId?: (name: string) => unknown;
  /** Metadata of a second, younger turn. */
  readonly next?: Readonly<Record<string, unknown>>;
  /** The second turn is the current one. */
  readonly nextIsCurrent?: boolean;
  readonly more?: (row: PlantedMessage) => readonly Partial<PlantedMessage>[];
}

const FLAGS = [true, 'true', 1, '1'] as const;
const NO_FLAGS = [false, 'false', 0, '0', 'yes', '', null, 1.5] as const;
const shown = (value: unknown) => JSON.stringify(value);

const STATES: readonly State[] = [
  { title: 'both questions pending', isActive: true },
  { title: 'no status', isActive: true, statuses: [undefined, undefined] },
  { title: 'an empty status', isActive: true, statuses: ['', ''] },
  { title: 'a null status', isActive: true, statuses: [null, null] },
  { title: 'one answered, one pending', isActive: true, statuses: ['answered', 'pending'] },
  { title: 'one cancelled, one pending', isActive: true, statuses: ['cancelled', 'pending'] },
  { title: 'both answered', isActive: false, claim: 'lost', statuses: ['answered', 'answered'] },
  { title: 'both rejected', isActive: false, claim: 'lost', statuses: ['rejected', 'rejected'] },
  { title: 'both cancelled', isActive: false, statuses: ['cancelled', 'cancelled'] },
  { title: 'both expired', isActive: false, statuses: ['expired', 'expired'] },
  { title: 'an unknown status', isActive: false, statuses: ['open', 'PENDING'] },
  { title: 'a status that is no text', isActive: false, statuses: [0, ['pending']] },
  ...['created', 'running'].map((session) => ({ title: `a session that is ${session}`, isActive: true, session })),
  ...['completed', 'failed', 'cancelled'].map((session) => ({
    title: `a session that is ${session}`,
    isActive: false,
    session,
  })),
  { title: 'a younger turn', isActive: false, next: {}, nextIsCurrent: true },
  ...FLAGS.map((flag) => ({
    title: `a younger turn that is only reserved (${shown(flag)})`,
    isActive: true,
    next: { prompt_dispatch_pending: flag },
  })),
  ...NO_FLAGS.map((flag) => ({
    title: `a younger turn whose reservation flag is ${shown(flag)}`,
    isActive: false,
    next: { prompt_dispatch_pending: flag },
    nextIsCurrent: true,
  })),
  ...FLAGS.map((flag) => ({
    title: `a younger reserved turn whose dispatch was attempted (${shown(flag)})`,
    isActive: false,
    next: { prompt_dispatch_pending: true, prompt_dispatch_attempted: flag },
    nextIsCurrent: true,
  })),
  ...NO_FLAGS.map((flag) => ({
    title: `a younger reserved turn whose attempt flag is ${shown(flag)}`,
    isActive: true,
    next: { prompt_dispatch_pending: '1', prompt_dispatch_attempted: flag },
  })),
  {
    title: 'a younger reserved turn to which a message refers',
    isActive: false,
    next: { prompt_dispatch_pending: true },
    nextIsCurrent: true,
    more: (row) => [{ turnId: row.turnId.replace(/first$/, 'next'), type: 'message', metadata: '{}' }],
  },
  {
    title: 'malformed: a row of another type',
    isActive: false,
    more: () => [{ type: 'message' }],
  },
  {
    title: 'malformed: a row of another session',
    isActive: false,
    more: () => [{ sessionId: 'elsewhere', turnId: 'elsewhere-first' }],
  },
  {
    title: 'malformed: an answered row of another turn',
    isActive: false,
    claim: 'lost',
    next: { prompt_dispatch_pending: true, prompt_dispatch_attempted: true },
    nextIsCurrent: true,
    more: (row) => [
      {
        turnId: row.turnId.replace(/first$/, 'next'),
        metadata: row.metadata.replace('"status":"pending"', '"status":"answered"'),
      },
    ],
  },
  {
    title: 'malformed: a pending row of the current turn beside older ones',
    isActive: false,
    next: {},
    nextIsCurrent: true,
    more: (row) => [{ turnId: row.turnId.replace(/first$/, 'next') }],
  },
  ...([undefined, '', 7, null] as const).map((questionId) => ({
    title: `L16: a question id that is ${shown(questionId) ?? 'missing'}`,
    isActive: true,
    isListed: false,
    claim: 'validation_failed' as const,
    questionIds: ['q1', questionId] as const,
  })),
  {
    title: 'a pending id that is a number',
    isActive: false,
    claim: 'not_found',
    pendingId: (name) => Number(name.replace(/\D/g, '')),
  },
  {
    title: 'a pending id that is too long',
    isActive: false,
    claim: 'not_found',
    pendingId: (name) => name.padEnd(129, 'x'),
  },
];

/** Each of them gets a bundle of its own in each state, because most of them end it. */
const USES = ['look', 'guard', 'claim', 'cancel', 'detach', 'expire'] as const;
type Use = (typeof USES)[number];

function planted(state: State, name: string): PlantedRows {
  const pendingId = state.pendingId === undefined ? name : state.pendingId(name);
  const [statuses, questionIds] = [state.statuses ?? ['pending', 'pending'], state.questionIds ?? ['q1', 'q2']];
  const rows = [0, 1].map((index): PlantedMessage => ({
    id: `${name}-row-${index}`,
    sessionId: name,
    turnId: `${name}-first`,
    taskId: '',
    type: 'clarification_request',
    metadata: JSON.stringify({
      pending_id: pendingId,
      question_id: questionIds[index],
      question_index: index,
      status: statuses[index],
    }),
    createdAt: '2026-01-01T00:00:00.000Z',
    bundleCreatedAt: '2026-01-01T00:00:00.000Z',
  }));
  const [first] = rows as [PlantedMessage];
  const more = (state.more?.(first) ?? []).map((change, index) => ({
    ...first,
    id: `${name}-more-${index}`,
    ...change,
  }));
  return {
    workspaces: [],
    tasks: [{ id: name, workspaceId: '' }],
    sessions: [{ id: name, taskId: name, state: state.session ?? 'waiting_for_input', isPrimary: true }],
    turns: [
      { id: `${name}-first`, sessionId: name, startedAt: '2026-01-01T00:00:00.000Z' },
      ...(state.next === undefined
        ? []
        : [
            {
              id: `${name}-next`,
              sessionId: name,
              startedAt: '2026-01-01T00:00:00.001Z',
              metadata: JSON.stringify(state.next),
            },
          ]),
    ],
    messages: [...rows, ...more],
  };
}

describeEachEngine('D4: one rule says which bundles are active, for everything that asks', (engine) => {
  let database: TestDatabase;
  let services: Services;
  let listed: ReadonlySet<string>;

  const named = STATES.map((state, index) => ({ ...state, name: (use: Use) => `${use}-${1000 + index}` }));

  beforeAll(async () => {
    database = await engine.createDatabase();
    services = servicesOn(database);
    const worlds = named.flatMap((state) => USES.map((use) => planted(state, state.name(use))));
    worlds.unshift(planted({ title: '', isActive: true }, 'elsewhere'));
    await plantRows(database, {
      tasks: worlds.flatMap((world) => world.tasks),
      sessions: worlds.flatMap((world) => world.sessions),
      turns: worlds.flatMap((world) => world.turns),
      messages: worlds.flatMap((world) => world.messages),
    });
    const ids: string[] = [];
    for (let cursor = ''; ;) {
      const page = await services.listing.list(UNSCOPED, { limit: 200, cursor }, within());
      ids.push(...page.bundles.map((bundle) => bundle.pending_id));
      cursor = page.next_cursor;
      if (cursor === '') break;
    }
    expect(new Set(ids).size).toBe(ids.length);
    listed = new Set(ids);
  }, 60_000);

  const idOf = (state: State, name: string) => String(state.pendingId === undefined ? name : state.pendingId(name));

  /** The refusal's code, or what the call gave. */
  const codeOr = async <T>(call: Promise<T>): Promise<T | string> =>
    call.catch((error: unknown) => {
      if (error instanceof DomainError) return error.code;
      throw error;
    });

  async function documents(name: string): Promise<Record<string, unknown>[]> {
    const { rows } = await database.sql<{ metadata: string }>(
      "SELECT metadata FROM task_session_messages WHERE id LIKE $1 || '-row-%' OR id LIKE $1 || '-more-%' ORDER BY id",
      [name],
    );
    return rows.map((row) => JSON.parse(row.metadata) as Record<string, unknown>);
  }

  const isPending = (document: Record<string, unknown>) =>
    ['', 'pending', null, undefined].includes(document['status'] as string);
  const refused = (state: State) => (state.pendingId === undefined ? 'not_active' : 'not_found');

  it.each(named)('$title: the listing, the detail and every pending-action field', async (state) => {
    const name = state.name('look');
    expect(listed.has(idOf(state, name))).toBe(state.isListed ?? state.isActive);
    const detail = await codeOr(services.requests.get(UNSCOPED, idOf(state, name), within()));
    if (state.pendingId !== undefined) expect(detail).toBe('not_found');
    else expect(detail).toMatchObject({ active: state.isActive });
    const action = state.isActive ? 'clarification' : null;
    expect(await services.tasks.get(UNSCOPED, name, within())).toMatchObject({
      task_pending_action: action,
      primary_session_pending_action: action,
    });
    const { sessions } = await services.sessions.listOfTask(UNSCOPED, name, within());
    expect(sessions).toMatchObject([{ id: name, pending_action: action }]);
  });

  it.each(named)('$title: the workflow guard', async (state) => {
    const completed = await codeOr(services.tasks.complete(UNSCOPED, state.name('guard'), within()));
    if (state.isActive) expect(completed).toBe('conflict');
    else expect(completed).toMatchObject({ state: 'completed' });
  });

  it.each(named)('P2, $title: the claim', async (state) => {
    const name = state.name('claim');
    const before = await documents(name);
    const resolved = await codeOr(
      services.resolver.resolveBundle(
        UNSCOPED,
        idOf(state, name),
        { rejected: true },
        { surface: 'rest', deadline: within() },
      ),
    );
    const expected = state.claim ?? (state.isActive ? 'claimed' : 'not_active');
    if (expected === 'claimed' || expected === 'lost') {
      expect(resolved).toMatchObject({ claimed: expected === 'claimed' });
    } else expect(resolved).toBe(expected);
    const claimed = (document: Record<string, unknown>) =>
      expected === 'claimed' && isPending(document) ? { ...document, status: 'rejected' } : document;
    expect(await documents(name)).toEqual(before.map(claimed));
  });

  it.each(named)('X, $title: cancel', async (state) => {
    const name = state.name('cancel');
    const before = await documents(name);
    const cancelled = await codeOr(services.requests.cancel(UNSCOPED, idOf(state, name), within()));
    expect(cancelled).toBe(state.isActive ? undefined : refused(state));
    const ended = (document: Record<string, unknown>) =>
      state.isActive && isPending(document) ? { ...document, status: 'cancelled' } : document;
    expect(await documents(name)).toEqual(before.map(ended));
  });

  it.each(named)('DETACH, $title: completing the turn', async (state) => {
    const name = state.name('detach');
    const before = await documents(name);
    const turn = `${name}-${state.nextIsCurrent === true ? 'next' : 'first'}`;
    await services.turns.complete(UNSCOPED, name, turn, within());
    const detached = (document: Record<string, unknown>) =>
      state.isActive && isPending(document) ? { ...document, agent_disconnected: true } : document;
    expect(await documents(name)).toEqual(before.map(detached));
  });

  it.each(named)('EXPIRE, $title: ending the session', async (state) => {
    const name = state.name('expire');
    const before = await documents(name);
    const hasEnded = ['completed', 'failed', 'cancelled'].includes(state.session ?? '');
    const updated = await codeOr(services.sessions.update(UNSCOPED, name, { state: 'failed' }, within()));
    if (hasEnded && state.session !== 'failed') expect(updated).toBe('conflict');
    const expired = (document: Record<string, unknown>) =>
      state.isActive && isPending(document) ? { ...document, status: 'expired' } : document;
    expect(await documents(name)).toEqual(before.map(expired));
  });
});
