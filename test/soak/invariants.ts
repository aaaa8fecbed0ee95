import { Deadline } from '../../src/common/deadline.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase } from '../../src/persistence/open-database.js';
import type { SoakCall } from './soak-receiver.js';
import type { Told } from './soak-world.js';

interface Row {
  readonly id: string;
  readonly turn_id: string;
  readonly type: string;
  readonly client_message_id: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
}

interface Turn {
  readonly id: string;
  readonly task_session_id: string;
  readonly dispatch: string;
  readonly mailbox: string;
  readonly started_at: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What everybody was told, by pending id, and the ids of the messages that were admitted. */
interface KnownWorld {
  readonly told: ReadonlyMap<string, readonly Told[]>;
  readonly admitted: ReadonlyMap<string, string>;
}

const RESUMED_FROM = 'resumed_from_pending_id';

/** What must be true of the rows, of what everybody was told, and of what the webhook got, when nothing is owed any more. */
export async function faultsIn(url: string, world: KnownWorld, calls: readonly SoakCall[]): Promise<string[]> {
  const { rows, turns } = await read(url);
  const faults: string[] = [];
  const bundles = groupBy(
    rows.filter((row) => row.type === 'clarification_request'),
    (row) => String(row.metadata['pending_id']),
  );
  const carriers = groupBy(
    turns.filter((turn) => RESUMED_FROM in turn.metadata),
    (turn) => String(turn.metadata[RESUMED_FROM]),
  );

  for (const turn of turns) {
    const left = Object.keys(turn.metadata).filter((key) => key.startsWith('prompt_dispatch_'));
    if (left.length > 0) faults.push(`turn ${turn.id} is still reserved: ${left.join(', ')}`);
    if (turn.dispatch === 'owed' || turn.dispatch === 'unconfirmed') faults.push(`turn ${turn.id} still owes a call`);
  }
  for (const row of rows) {
    if ('response_delivery_pending' in row.metadata) faults.push(`row ${row.id} still owes its hand-over`);
  }
  for (const [pendingId, resumed] of carriers) {
    if (resumed.length > 1) faults.push(`bundle ${pendingId} has ${resumed.length} turns with its answer`);
    const status = statusOf(bundles.get(pendingId));
    if (status !== 'answered') faults.push(`bundle ${pendingId} has a turn with its answer and is ${status}`);
  }
  for (const [pendingId, told] of world.told) {
    for (const fault of faultsOfTold(told, bundles.get(pendingId) ?? [], carriers.has(pendingId))) {
      faults.push(`bundle ${pendingId}: ${fault}\n${history(told)}`);
    }
  }
  faults.push(...faultsOfCalls(calls, turns, carriers));
  for (const [clientId] of world.admitted) {
    const stored = rows.filter((row) => row.client_message_id === clientId);
    if (stored.length !== 1) faults.push(`message ${clientId} is there ${stored.length} times`);
  }
  for (const [sessionId, own] of groupBy(turns, (turn) => turn.task_session_id)) {
    if (new Set(own.map((turn) => turn.started_at)).size !== own.length) {
      faults.push(`session ${sessionId} has two turns that started at once`);
    }
  }
  return faults;
}

/** Whoever was told that an answer counts was told of the one that does. */
function faultsOfTold(told: readonly Told[], rows: readonly Row[], isResumed: boolean): string[] {
  const faults: string[] = [];
  const status = statusOf(rows);
  const answers = rows
    .map((row) => row.metadata['response'] as { question_id: string } | undefined)
    .filter((response) => response !== undefined)
    .sort((a, b) => a.question_id.localeCompare(b.question_id));
  const isFinal = ({ by, status: code, body }: Told) =>
    code === 200 && (by === 'agent' || body['claimed'] === true || body['delivered'] === true);
  if (told.filter(({ body }) => body['claimed'] === true).length > 1) faults.push('two responders won');
  for (const one of told.filter(isFinal)) {
    const response = one.by === 'agent' ? one.body : (one.body['response'] as Record<string, unknown>);
    const said = response['rejected'] === true ? 'rejected' : 'answered';
    if (said !== status) faults.push(`somebody was told that it is ${said}, and it is ${status}`);
    if (JSON.stringify(response['answers']) !== JSON.stringify(answers)) {
      faults.push(
        `somebody was told ${JSON.stringify(response['answers'])}, and the rows say ${JSON.stringify(answers)}`,
      );
    }
  }
  for (const { status: code, body } of told) {
    if (code === 500 && body['retryable'] === false && status !== 'answered' && status !== 'rejected') {
      faults.push(`somebody was told that the answer is recorded, and it is ${status}`);
    }
  }
  const hasWaiterGotIt = told.some(({ by, body }) => by === 'agent' && body['turn_id'] === undefined);
  if (hasWaiterGotIt && isResumed) faults.push('its agent got the answer while it waited, and again in a turn');
  return faults;
}

function faultsOfCalls(
  calls: readonly SoakCall[],
  turns: readonly Turn[],
  carriers: ReadonlyMap<string, readonly Turn[]>,
): string[] {
  const faults: string[] = [];
  const byId = groupBy(calls, (call) => call.id);
  for (const [id, same] of byId) {
    if (new Set(same.map((call) => call.body)).size > 1) faults.push(`call ${id} was made with different bytes`);
  }
  // Refused calls are taken back; any other may have told the agent, so its turn stands.
  const standing = new Set(calls.filter((call) => call.fault !== 'status 500').map((call) => call.id));
  const known = new Set(turns.map((turn) => turn.id));
  for (const id of standing) {
    if (!known.has(id)) faults.push(`call ${id} may have told an agent of a turn that is not there`);
  }
  for (const call of calls.filter(({ id }) => standing.has(id))) {
    const { pending_id: pendingId } = JSON.parse(call.body) as { pending_id?: string };
    if (pendingId === undefined) continue;
    const carrier = carriers.get(pendingId)?.[0]?.id;
    if (carrier !== call.id) faults.push(`bundle ${pendingId}: call ${call.id} told of another turn than ${carrier}`);
  }
  return faults;
}

function statusOf(rows: readonly Row[] | undefined): string {
  return [...new Set(rows?.map((row) => String(row.metadata['status'])))].join('+');
}

function history(told: readonly Told[]): string {
  return told.map(({ by, status, body }) => `    ${by} ${status} ${JSON.stringify(body)}`).join('\n');
}

async function read(url: string): Promise<{ rows: Row[]; turns: Turn[] }> {
  const database = await openDatabase({ url: parseDatabaseUrl(url), poolSize: 2, boundMs: 30_000, migrate: false });
  const all = async (sql: string) =>
    (await database.reader.query(Deadline.after(60_000), sql)).rows.map((row) => ({
      ...row,
      metadata: JSON.parse(String(row['metadata'])) as Record<string, unknown>,
    }));
  try {
    return {
      rows: (await all(
        'SELECT id, turn_id, type, client_message_id, metadata FROM task_session_messages',
      )) as unknown as Row[],
      turns: (await all(
        'SELECT id, task_session_id, dispatch, mailbox, started_at, metadata FROM task_session_turns',
      )) as unknown as Turn[],
    };
  } finally {
    await database.close();
  }
}

function groupBy<T>(values: readonly T[], keyOf: (value: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return groups;
}
