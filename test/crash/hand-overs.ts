import { McpCaller, RestCaller, type Heard, type ToolAnswer } from '../support/callers.js';
import { answersTo, ask, makeEstate, type Estate } from '../support/estate.js';
import { questionOf } from '../support/question.js';
import { until } from '../support/until.js';
import { ACCEPT, type Reaction } from '../support/webhook-receiver.js';

/** What the next start must have made of a bundle, by what was durable when the process was killed (4.5). */
export type Expected =
  /** Nobody's answer counts: the next one wins and is handed over. */
  | 'answerable'
  /** Terminal, in the turn that asked: a repeated wait returns it. */
  | 'handed over to the wait'
  /** Terminal, and in the mailbox of one new turn. */
  | 'handed over in a new turn'
  /** Terminal, and queued behind the sibling that is still open. */
  | 'handed over to the queue'
  /** Declined and over; the agent is not resumed. */
  | 'declined'
  /** Terminal, with a newer turn begun meanwhile: kept, and given to nobody. */
  | 'history'
  /** Terminal, and the agent was called and has accepted it before the kill. */
  | 'handed over by a call'
  /** Terminal, and the agent is called (again): with the same id and the same bytes, until it accepts. */
  | 'sent again';

export interface Situation extends Estate {
  readonly siblingId?: string;
  /** What the agent's call gave, when it waits; undefined when the connection died. */
  readonly waiting?: Promise<Heard | ToolAnswer | undefined>;
  /** Cuts the connection by which it waits. */
  readonly leave?: () => void;
}

export interface HandOver {
  readonly name: string;
  readonly outcome: unknown;
  /** The agent is called, and does this until the kill; afterwards it accepts. */
  readonly whenCalled?: Reaction;
  readonly arrange: (url: string) => Promise<Situation>;
  /** What happens, where it is not that somebody responds. */
  readonly deed?: (url: string, situation: Situation) => Promise<unknown>;
  /** Happens while the answer waits at one crossing, which it leaves after the crossing `until`. */
  readonly meanwhile?: {
    readonly at: string;
    readonly happens: (url: string, situation: Situation) => Promise<unknown>;
    readonly until: string;
  };
  /** The crossings of a clean run from the answer on, in order, and what a kill at each of them leaves behind. */
  readonly crossings: Readonly<Record<string, Expected>>;
  /** Those at which nothing yet tells it from another hand-over. */
  readonly shared?: Readonly<Record<string, Expected>>;
}

/** A hand-over that is killed, or the recovery from one that was. */
export interface CrashCase extends Pick<HandOver, 'name' | 'crossings' | 'shared'> {
  readonly handOver: HandOver;
  /** For a recovery: where the server before it was killed. */
  readonly killedBefore?: string;
}

const ANSWER = answersTo(['q1'], 'in my own words');
const DECLINE = { rejected: true, reject_reason: 'not now' };

/** One transaction after the other: the claim, and the one that settles it. */
const BEFORE_THE_HAND_OVER = {
  'bundle.claim: before BEGIN': 'answerable',
  'bundle.claim: before COMMIT': 'answerable',
  'bundle.claim: after COMMIT': 'answerable',
  'delivery.hand-over: before BEGIN': 'answerable',
  'delivery.hand-over: before COMMIT': 'answerable',
} as const;

const CLAIMED_AND_RESERVED = { ...BEFORE_THE_HAND_OVER, 'delivery.hand-over: after COMMIT': 'answerable' } as const;

/** From the commit of the attempt on nobody can prove, after a kill, that the agent has not heard. */
const UP_TO_THE_CALL = {
  ...CLAIMED_AND_RESERVED,
  'delivery.attempt: before BEGIN': 'answerable',
  'delivery.attempt: before COMMIT': 'answerable',
  'delivery.attempt: after COMMIT': 'sent again',
  'call: before': 'sent again',
} as const;

const afterTheCall = (transaction: string, expected: Expected) =>
  ({
    'call: after': 'sent again',
    [`${transaction}: before BEGIN`]: 'sent again',
    [`${transaction}: before COMMIT`]: 'sent again',
    [`${transaction}: after COMMIT`]: expected,
    'reply to respond: before': expected,
    'reply to respond: after': expected,
  }) as const;

const settled = (expected: Expected) =>
  ({
    'delivery.hand-over: after COMMIT': expected,
    'reply to respond: before': expected,
    'reply to respond: after': expected,
  }) as const;

const waited = (reply: string, expected: Expected) =>
  ({
    'delivery.hand-over: after COMMIT': expected,
    [`${reply}: before`]: expected,
    'reply to respond: before': expected,
    [`${reply}: after`]: expected,
    'reply to respond: after': expected,
  }) as const;

/** The three of a transaction whose commit makes a difference. */
const turning = (transaction: string, before: Expected, after: Expected) =>
  ({
    [`${transaction}: before BEGIN`]: before,
    [`${transaction}: before COMMIT`]: before,
    [`${transaction}: after COMMIT`]: after,
  }) as const;

const each = (transaction: string, expected: Expected) => turning(transaction, expected, expected);

const CLAIMED = each('bundle.claim', 'answerable');

const CONFIRMED = { ...BEFORE_THE_HAND_OVER, 'delivery.hand-over: after COMMIT': 'handed over to the wait' } as const;

/** A prompt that has waited for its turn is owed to the agent from the moment on at which the turn is open. */
const RELEASED = {
  ...turning('bundle.cancel', 'handed over to the queue', 'sent again'),
  'call: before': 'sent again',
  'call: after': 'sent again',
} as const;

const HAND_OVERS: readonly HandOver[] = [
  {
    name: 'an answer to an agent that waits over REST',
    outcome: ANSWER,
    arrange: waitingOverRest,
    crossings: { ...BEFORE_THE_HAND_OVER, ...waited('reply to wait', 'handed over to the wait') },
  },
  {
    name: 'an answer to an agent that asks over MCP',
    outcome: ANSWER,
    arrange: waitingOverMcp,
    crossings: { ...BEFORE_THE_HAND_OVER, ...waited('reply to ask', 'handed over to the wait') },
  },
  {
    name: 'an answer to an agent that fetches its turns',
    outcome: ANSWER,
    arrange: (url) => makeEstate(new RestCaller(url)),
    crossings: { ...BEFORE_THE_HAND_OVER, ...settled('handed over in a new turn') },
  },
  {
    name: 'a rejection to an agent that waits',
    outcome: DECLINE,
    arrange: waitingOverRest,
    crossings: { ...BEFORE_THE_HAND_OVER, ...waited('reply to wait', 'declined') },
  },
  {
    name: 'a rejection that nobody waits for',
    outcome: DECLINE,
    arrange: (url) => makeEstate(new RestCaller(url)),
    crossings: { ...BEFORE_THE_HAND_OVER, ...settled('declined') },
  },
  {
    name: 'an answer beside an open sibling',
    outcome: ANSWER,
    arrange: besideSibling,
    crossings: { ...BEFORE_THE_HAND_OVER, ...settled('handed over to the queue') },
  },
  {
    name: 'an answer to an agent that is called and accepts',
    outcome: ANSWER,
    whenCalled: ACCEPT,
    arrange: (url) => makeEstate(new RestCaller(url)),
    crossings: { ...UP_TO_THE_CALL, ...afterTheCall('delivery.publish', 'handed over by a call') },
  },
  {
    name: 'an answer to an agent that is called and refuses',
    outcome: ANSWER,
    whenCalled: { status: 500 },
    shared: UP_TO_THE_CALL,
    arrange: (url) => makeEstate(new RestCaller(url)),
    crossings: { ...UP_TO_THE_CALL, ...afterTheCall('delivery.restore', 'answerable') },
  },
  {
    name: 'an answer to an agent whose reply is lost',
    outcome: ANSWER,
    whenCalled: 'reset',
    shared: UP_TO_THE_CALL,
    arrange: (url) => makeEstate(new RestCaller(url)),
    crossings: { ...UP_TO_THE_CALL, ...afterTheCall('delivery.publish', 'sent again') },
  },
  {
    name: 'an answer to an agent whose connection dies before it is written',
    outcome: ANSWER,
    shared: { ...CONFIRMED, ...each('bundle.detach', 'handed over to the wait') },
    arrange: waitingOverRest,
    meanwhile: {
      at: 'delivery.hand-over: after COMMIT',
      happens: async (_url, { leave }) => leave?.(),
      until: 'bundle.detach: after COMMIT',
    },
    crossings: {
      ...CONFIRMED,
      ...each('bundle.detach', 'handed over to the wait'),
      // Into a connection that is closed.
      'reply to wait: before': 'handed over to the wait',
      ...turning('delivery.hand-over-again', 'handed over to the wait', 'handed over in a new turn'),
      'reply to respond: before': 'handed over in a new turn',
      'reply to respond: after': 'handed over in a new turn',
    },
  },
  {
    name: 'an answer that is overtaken by a newer turn',
    outcome: ANSWER,
    shared: CLAIMED,
    arrange: (url) => makeEstate(new RestCaller(url)),
    meanwhile: { at: 'bundle.claim: after COMMIT', happens: openTurn, until: 'turn.open: after COMMIT' },
    crossings: {
      ...CLAIMED,
      ...turning('turn.open', 'answerable', 'history'),
      ...each('delivery.hand-over', 'history'),
      'reply to respond: before': 'history',
      'reply to respond: after': 'history',
    },
  },
  {
    name: 'a queued answer to an agent that is called and accepts',
    outcome: ANSWER,
    whenCalled: ACCEPT,
    arrange: queued,
    deed: cancelSibling,
    crossings: { ...RELEASED, ...turning('dispatch.settle', 'sent again', 'handed over by a call') },
  },
  {
    name: 'a queued answer to an agent that is called and refuses',
    outcome: ANSWER,
    whenCalled: { status: 500 },
    shared: RELEASED,
    arrange: queued,
    deed: cancelSibling,
    crossings: { ...RELEASED, ...each('dispatch.postpone', 'sent again') },
  },
];

const RECOVERIES: readonly CrashCase[] = [
  recovery('an answer to an agent that waits over REST', 'bundle.claim: after COMMIT', {
    ...each('server.start', 'answerable'),
    ...each('delivery.recover', 'answerable'),
  }),
  recovery('an answer to an agent that is called and accepts', 'delivery.hand-over: after COMMIT', {
    ...each('server.start', 'answerable'),
    ...each('recovery.reservation', 'answerable'),
  }),
  recovery('an answer to an agent that is called and accepts', 'call: after', {
    ...each('server.start', 'sent again'),
    ...each('recovery.reservation', 'sent again'),
    ...each('recovery.announce', 'sent again'),
    'call: before': 'sent again',
    'call: after': 'sent again',
    ...each('dispatch.settle', 'sent again'),
  }),
  recovery('an answer to an agent whose reply is lost', 'delivery.publish: after COMMIT', {
    ...each('server.start', 'sent again'),
    'call: before': 'sent again',
    'call: after': 'sent again',
    ...each('dispatch.settle', 'sent again'),
  }),
  recovery('an answer that is overtaken by a newer turn', 'turn.open: after COMMIT', {
    ...each('server.start', 'history'),
    ...each('delivery.recover', 'history'),
  }),
];

export const CRASH_CASES: readonly CrashCase[] = [
  ...HAND_OVERS.map((handOver) => ({ ...handOver, handOver })),
  ...RECOVERIES,
];

/** Of what a kill at `killedBefore` has left; killed itself before it has ended. */
function recovery(of: string, killedBefore: string, crossings: Readonly<Record<string, Expected>>): CrashCase {
  const handOver = HAND_OVERS.find(({ name }) => name === of);
  if (handOver === undefined) throw new Error(`there is no hand-over of ${of}`);
  return { handOver, name: `the recovery of ${of}, killed at "${killedBefore}"`, killedBefore, crossings };
}

/** The agent's call is under way and its bundle live. */
async function waitingOverRest(url: string): Promise<Situation> {
  const rest = new RestCaller(url);
  const estate = await makeEstate(rest);
  const connection = new AbortController();
  const path = `/clarification/${estate.pendingId}/wait`;
  const waiting = rest.send('GET', path, undefined, connection.signal).catch(() => undefined);
  return { ...(await live(rest, estate, waiting)), leave: () => connection.abort() };
}

async function waitingOverMcp(url: string): Promise<Situation> {
  const rest = new RestCaller(url);
  const estate = await makeEstate(rest);
  const mcp = await McpCaller.open(url, `/mcp/sessions/${estate.sessionId}`);
  // The same question again is the same bundle.
  const question = { questions: [questionOf('q1')], context: 'because' };
  const waiting = mcp.call('ask_user_question_kandev', question).catch(() => undefined);
  return live(rest, estate, waiting);
}

async function live(
  rest: RestCaller,
  estate: Estate,
  waiting: Promise<Heard | ToolAnswer | undefined>,
): Promise<Situation> {
  const state = async () => (await rest.make('GET', `/task-sessions/${estate.sessionId}`)).state;
  await until(async () => (await state()) === 'waiting_for_input');
  return { ...estate, waiting };
}

async function besideSibling(url: string): Promise<Situation> {
  const rest = new RestCaller(url);
  const estate = await makeEstate(rest);
  return { ...estate, siblingId: await ask(rest, estate.sessionId, ['q1'], 'something else') };
}

/** The answer is given, and its prompt waits for nothing but the sibling. */
async function queued(url: string): Promise<Situation> {
  const rest = new RestCaller(url);
  const situation = await besideSibling(url);
  await rest.make('POST', `/task-sessions/${situation.sessionId}/turns/${situation.turnId}/complete`);
  await rest.make('POST', `/clarification/${situation.pendingId}/respond`, ANSWER);
  return situation;
}

function cancelSibling(url: string, { siblingId }: Situation): Promise<unknown> {
  return new RestCaller(url).make('POST', `/clarification/${siblingId}/cancel`);
}

function openTurn(url: string, { sessionId }: Situation): Promise<unknown> {
  return new RestCaller(url).make('POST', `/task-sessions/${sessionId}/turns`, {});
}
