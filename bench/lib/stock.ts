import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { Deadline } from '../../src/common/deadline.js';
import { newRowId } from '../../src/common/row-id.js';
import { hashToken, issueToken } from '../../src/identity/tokens.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase, type Database } from '../../src/persistence/open-database.js';
import type { SqlRow, SqlValue } from '../../src/persistence/unit-of-work.js';
import { BenchError } from './bench-error.js';
import { HttpClient, type Json } from './http-client.js';
import { CONTEXT, QUESTION, STRANGER, USER } from './seed.js';

/** An open bundle of one question, in a task, session and turn of its own. */
export interface Bundle {
  readonly taskId: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly messageId: string;
  readonly pendingId: string;
  readonly agentToken: string;
}

/** `live`: as it is while its agent waits; `detached`: as it is once the agent has gone. */
export type BundleKind = 'live' | 'detached';

/** Parents before children. */
const TABLES = ['tasks', 'task_sessions', 'task_session_turns', 'task_session_messages'] as const;
type Rows = Readonly<Record<(typeof TABLES)[number], SqlRow>>;

const BUDGET_MS = 60_000;
const AT_ONCE = 100;

/**
 * Bundles to be answered, made before anything is measured: one of each kind by the product itself, the others as copies
 * of its rows under ids of their own, whatever columns these have by now.
 */
export class Stock {
  private constructor(
    private readonly database: Database,
    private readonly originals: Readonly<Record<BundleKind, { bundle: Bundle; rows: Rows }>>,
    private readonly columns: Readonly<Record<string, readonly string[]>>,
  ) {}

  /** @param server a product that runs on the database at `databaseUrl` */
  static async open(databaseUrl: string, server: { readonly url: string }): Promise<Stock> {
    const url = parseDatabaseUrl(databaseUrl);
    const database = await openDatabase({ url, poolSize: 2, boundMs: BUDGET_MS, migrate: false });
    try {
      const columns: Record<string, readonly string[]> = {};
      for (const table of TABLES) columns[table] = await storedColumns(database, table);
      return new Stock(database, await originalsOn(database, server.url), columns);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  /** @param owner whose workspace their tasks are in */
  async bundles(kind: BundleKind, count: number, owner: 'user' | 'stranger' = 'user'): Promise<readonly Bundle[]> {
    const made: Bundle[] = [];
    while (made.length < count) {
      const some = Array.from({ length: Math.min(AT_ONCE, count - made.length) }, newBundle);
      await this.insert(kind, some, owner);
      made.push(...some);
    }
    return made;
  }

  /** What has become of a bundle's only question, from its row. */
  async statusOf(bundle: Bundle): Promise<{ readonly status: string; readonly isSettled: boolean }> {
    const [row] = await rowsOf(this.database, 'task_session_messages', 'id', bundle.messageId);
    const metadata = JSON.parse(String(row?.['metadata']));
    return { status: metadata.status, isSettled: metadata.response_delivery_pending === undefined };
  }

  close(): Promise<void> {
    return this.database.close();
  }

  private async insert(kind: BundleKind, bundles: readonly Bundle[], owner: 'user' | 'stranger'): Promise<void> {
    const original = this.originals[kind];
    const workspaceId = owner === 'user' ? USER.workspaceId : STRANGER.workspaceId;
    await this.database.unitOfWork.run('bench.stock', Deadline.after(BUDGET_MS), async (tx) => {
      for (const table of TABLES) {
        const columns = this.columns[table] ?? [];
        const params: SqlValue[] = [];
        const values = bundles.map((bundle) => {
          const renamed = rename(original.rows[table], original.bundle, bundle);
          const row = table === 'tasks' ? { ...renamed, workspace_id: workspaceId } : renamed;
          return `(${columns.map((column) => `$${params.push(row[column] ?? null)}`).join(', ')})`;
        });
        await tx.query(`INSERT INTO ${table} (${columns.join(', ')}) VALUES ${values.join(', ')}`, params);
      }
    });
  }
}

/** The texts by which a bundle's rows and requests name it, and nothing else. */
export function idsOf(bundle: Bundle): readonly string[] {
  return [
    bundle.taskId,
    bundle.sessionId,
    bundle.turnId,
    bundle.messageId,
    bundle.pendingId,
    hashToken(bundle.agentToken),
  ];
}

function newBundle(): Bundle {
  return {
    taskId: newRowId(),
    sessionId: newRowId(),
    turnId: newRowId(),
    messageId: newRowId(),
    pendingId: randomUUID(),
    agentToken: issueToken('agent').token,
  };
}

function rename(row: SqlRow, from: Bundle, to: Bundle): SqlRow {
  const names = idsOf(from).map((id, index) => [id, idsOf(to)[index] ?? ''] as const);
  const renamed = (value: SqlValue): SqlValue =>
    typeof value === 'string' ? names.reduce((text, [old, name]) => text.replaceAll(old, name), value) : value;
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [column, renamed(value)]));
}

async function originalsOn(
  database: Database,
  url: string,
): Promise<Readonly<Record<BundleKind, { bundle: Bundle; rows: Rows }>>> {
  const user = new HttpClient(url, USER.token);
  const made = async (client: HttpClient, path: string, body: unknown): Promise<Json> => {
    const reply = await client.send('POST', `/api/v1${path}`, body);
    if (reply.status >= 300) throw new BenchError(`POST ${path}: ${reply.status} ${reply.text}`);
    return JSON.parse(reply.text);
  };
  const task = await made(user, '/tasks', { title: 'A task', workspace_id: USER.workspaceId });
  const session = await made(user, `/tasks/${task.id}/sessions`, {});
  const agent = new HttpClient(url, session.agent_token as string);
  const asked = await made(agent, '/clarification/request', {
    session_id: session.id,
    questions: [QUESTION],
    context: CONTEXT,
  });
  agent.close();
  user.close();
  const leave = beginToWait(url, asked.pending_id as string, session.agent_token as string);
  try {
    // Its session is told to wait for input when the agent does.
    await until('the agent of the first bundle waits', async () => {
      const [row] = await rowsOf(database, 'task_sessions', 'id', session.id as string);
      return row?.['state'] === 'waiting_for_input';
    });
    const messages = await rowsOf(database, 'task_session_messages', 'task_session_id', session.id as string);
    const message = messages.find((row) => row['type'] === 'clarification_request');
    const bundle: Bundle = {
      taskId: task.id as string,
      sessionId: session.id as string,
      turnId: String(message?.['turn_id']),
      messageId: String(message?.['id']),
      pendingId: asked.pending_id as string,
      agentToken: session.agent_token as string,
    };
    const live = { bundle, rows: await rowsOfBundle(database, bundle) };
    leave();
    await until('the first bundle is detached', async () =>
      String((await rowsOfBundle(database, bundle)).task_session_messages['metadata']).includes('agent_disconnected'),
    );
    return { live, detached: { bundle, rows: await rowsOfBundle(database, bundle) } };
  } finally {
    leave();
  }
}

/** @returns to close its connection */
function beginToWait(url: string, pendingId: string, token: string): () => void {
  const wait = request(`${url}/api/v1/clarification/${pendingId}/wait?timeout=600`, {
    headers: { authorization: `Bearer ${token}` },
  });
  // It is ended by hand.
  wait.on('error', () => undefined);
  wait.end();
  return () => void wait.destroy();
}

async function rowsOfBundle(database: Database, bundle: Bundle): Promise<Rows> {
  const ids = [bundle.taskId, bundle.sessionId, bundle.turnId, bundle.messageId];
  const found: Partial<Record<(typeof TABLES)[number], SqlRow>> = {};
  for (const [index, table] of TABLES.entries()) {
    const [row] = await rowsOf(database, table, 'id', ids[index] ?? '');
    if (row === undefined) throw new BenchError(`the first bundle has no row in ${table}`);
    found[table] = row;
  }
  return found as Rows;
}

async function rowsOf(database: Database, table: string, column: string, value: string): Promise<readonly SqlRow[]> {
  const deadline = Deadline.after(BUDGET_MS);
  return (await database.reader.query(deadline, `SELECT * FROM ${table} WHERE ${column} = $1`, [value])).rows;
}

/** Without those that the database computes. */
async function storedColumns(database: Database, table: string): Promise<readonly string[]> {
  const sql =
    database.reader.dialect.engine === 'sqlite'
      ? 'SELECT name FROM pragma_table_xinfo($1) WHERE hidden = 0'
      : `SELECT column_name::text AS name FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER'`;
  const { rows } = await database.reader.query<{ name: string }>(Deadline.after(BUDGET_MS), sql, [table]);
  return rows.map(({ name }) => name);
}

/** @throws BenchError when it does not come to be */
export async function until(what: string, holds: () => Promise<boolean>, withinMs = 30_000): Promise<void> {
  const giveUpAt = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new BenchError(`waited in vain until ${what}`);
    await pause(20);
  }
}
