import type { Instant } from '../../src/common/clock.js';
import type { Caller } from '../../src/identity/caller.js';
import type { PlantedMessage, PlantedRows, PlantedTurn } from '../support/plant-rows.js';

export interface ExpectedBundle {
  readonly pendingId: string;
  readonly createdAt: Instant;
  readonly sessionId: string;
  /** The row ids in D2 order. */
  readonly rowIds: readonly string[];
}

export interface ListingFilter {
  readonly workspaceId?: string | undefined;
  readonly createdSince?: Instant | undefined;
}

const TERMINAL = ['completed', 'failed', 'cancelled'];

/** The rules of chapter 3 about the listing, said once more and as plainly as they can be, over rows in memory. */
export function expectedListing(world: PlantedRows, caller: Caller, filter: ListingFilter = {}): ExpectedBundle[] {
  return bundlesOf(world)
    .filter(({ rows }) => isActive(world, rows) && isAnswerable(rows) && isVisible(world, caller, rows))
    .filter(({ rows }) => filter.workspaceId === undefined || workspaceOf(world, rows) === filter.workspaceId)
    .map(({ pendingId, rows }) => ({
      pendingId,
      createdAt: bytewise(rows.map((row) => row.createdAt))[0] ?? '',
      sessionId: rows[0]?.sessionId ?? '',
      rowIds: inD2Order(rows).map((row) => row.id),
    }))
    .filter(({ createdAt }) => filter.createdSince === undefined || createdAt >= filter.createdSince)
    .sort((a, b) => compare(a.createdAt, b.createdAt) || compare(a.pendingId, b.pendingId));
}

/** D4, of a bundle's rows. */
export function isActive(world: PlantedRows, rows: readonly PlantedMessage[]): boolean {
  const [first] = rows;
  const session = world.sessions.find(({ id }) => id === first?.sessionId);
  if (first === undefined || session === undefined || TERMINAL.includes(session.state)) return false;
  const isMalformed = rows.some(
    (row) => row.type !== 'clarification_request' || row.sessionId !== first.sessionId || row.turnId !== first.turnId,
  );
  const isPending = (row: PlantedMessage) => ['', 'pending', null, undefined].includes(read(row)['status'] as string);
  return !isMalformed && first.turnId === currentTurn(world, session.id)?.id && rows.some(isPending);
}

export function bundlesOf(world: PlantedRows): { pendingId: string; rows: PlantedMessage[] }[] {
  const bundles = new Map<string, PlantedMessage[]>();
  for (const message of world.messages) {
    const pendingId = read(message)['pending_id'];
    if (typeof pendingId !== 'string' || pendingId === '' || [...pendingId].length > 128) continue;
    bundles.set(pendingId, [...(bundles.get(pendingId) ?? []), message]);
  }
  return [...bundles].map(([pendingId, rows]) => ({ pendingId, rows }));
}

function currentTurn(world: PlantedRows, sessionId: string): PlantedTurn | undefined {
  const authoritative = world.turns.filter((turn) => {
    const metadata = JSON.parse(turn.metadata ?? '{}') as Record<string, unknown>;
    const isSet = (flag: string) => [true, 'true', 1, '1'].includes(metadata[flag] as boolean);
    const isReservation =
      isSet('prompt_dispatch_pending') &&
      !isSet('prompt_dispatch_attempted') &&
      !world.messages.some(({ turnId }) => turnId === turn.id);
    return turn.sessionId === sessionId && !isReservation;
  });
  return authoritative.sort((a, b) => compare(a.startedAt, b.startedAt) || compare(a.id, b.id)).at(-1);
}

/** L16. */
function isAnswerable(rows: readonly PlantedMessage[]): boolean {
  return rows.every((row) => {
    const questionId = read(row)['question_id'];
    return typeof questionId === 'string' && questionId !== '';
  });
}

/** M5, M5a, A4, D5, L1c. */
function isVisible(world: PlantedRows, caller: Caller, rows: readonly PlantedMessage[]): boolean {
  if (caller.kind === 'unscoped') return true;
  const workspaceId = workspaceOf(world, rows);
  if (workspaceId === undefined || caller.kind !== 'user') return false;
  const workspace = world.workspaces.find(({ id }) => id === workspaceId);
  return workspace === undefined || ['', caller.userId].includes(workspace.ownerId);
}

/** The workspace of the bundle's one task. */
function workspaceOf(world: PlantedRows, rows: readonly PlantedMessage[]): string | undefined {
  const tasks = new Set(rows.map((row) => row.taskId || world.sessions.find(({ id }) => id === row.sessionId)?.taskId));
  const [task] = tasks;
  return tasks.size === 1 ? world.tasks.find(({ id }) => id === task)?.workspaceId : undefined;
}

function inD2Order(rows: readonly PlantedMessage[]): PlantedMessage[] {
  const index = (row: PlantedMessage) => {
    const value = read(row)['question_index'];
    return typeof value === 'number' ? value : 0;
  };
  return [...rows].sort((a, b) => index(a) - index(b) || compare(a.createdAt, b.createdAt) || compare(a.id, b.id));
}

function read(message: PlantedMessage): Record<string, unknown> {
  const document: unknown = JSON.parse(message.metadata);
  return typeof document === 'object' && document !== null ? (document as Record<string, unknown>) : {};
}

function compare(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function bytewise(texts: readonly string[]): string[] {
  return [...texts].sort(compare);
}
