import pg from 'pg';
import sqlite3 from 'sqlite3';
import { ROW_TYPES } from '../../src/persistence/postgres/type-parsers.js';
import type { BareInstructions } from './bare-plan.js';
import { BenchError } from './bench-error.js';
import type { PlannedStatement, Value } from './recording.js';
import { sqliteRows } from './seeded-databases.js';

/** Sends statements through the drivers alone. */
export interface BareConnections {
  send(statement: PlannedStatement, values: readonly Value[] | null): Promise<void>;
}

export function connectBare(instructions: BareInstructions): Promise<BareConnections> {
  return instructions.engine === 'sqlite' ? connectSqlite(instructions) : connectPostgres(instructions);
}

/** One connection that writes and one that only reads, as the product has them. */
async function connectSqlite({ databaseUrl, settings }: BareInstructions): Promise<BareConnections> {
  const file = databaseUrl.slice('sqlite:'.length);
  const open = (flags: number): Promise<sqlite3.Database> =>
    new Promise((resolve, reject) => {
      const database = new sqlite3.Database(file, flags, (error) =>
        error === null ? resolve(database) : reject(error),
      );
    });
  const connections = {
    writer: await open(sqlite3.OPEN_READWRITE),
    reader: await open(sqlite3.OPEN_READONLY),
  };
  for (const role of ['writer', 'reader'] as const) {
    const connection = connections[role];
    for (const [pragma, wanted] of Object.entries(settings[role] ?? {})) {
      if ((await valueOf(connection, pragma)) !== wanted) await sqliteRows(connection, `PRAGMA ${pragma} = ${wanted}`);
      const set = await valueOf(connection, pragma);
      if (set !== wanted) throw new BenchError(`PRAGMA ${pragma} is ${String(set)} here and ${wanted} in the product`);
    }
    connection.serialize();
  }
  const prepared = { writer: new Map<string, sqlite3.Statement>(), reader: new Map<string, sqlite3.Statement>() };
  const runnerOf = ({ role, name, text }: PlannedStatement): sqlite3.Database | sqlite3.Statement => {
    if (name === '') return connections[role];
    const known = prepared[role].get(text) ?? connections[role].prepare(text);
    prepared[role].set(text, known);
    return known;
  };
  return {
    send: (statement, values) =>
      new Promise((resolve, reject) => {
        const ended = (error: Error | null): void => (error === null ? resolve() : reject(error));
        const runner = runnerOf(statement) as unknown as Record<string, (...args: unknown[]) => void>;
        const text = statement.name === '' ? [statement.text] : [];
        const bound = statement.method === 'exec' ? [] : [values ?? []];
        runner[statement.method]?.(...text, ...bound, ended);
      }),
  };
}

async function valueOf(connection: sqlite3.Database, pragma: string): Promise<unknown> {
  const [row] = await sqliteRows(connection, `PRAGMA ${pragma}`);
  return Object.values(row as Record<string, unknown>)[0];
}

/** Two pools, as the product has them. A transaction keeps its connection, a read borrows one. */
async function connectPostgres({ databaseUrl, poolSize, settings }: BareInstructions): Promise<BareConnections> {
  const pool = (role: 'writer' | 'reader'): pg.Pool => {
    const set = Object.entries(settings[role] ?? {}).map(([name, value]) => `set_config('${name}', '${value}', false)`);
    // Awaited by the pool, which its types do not know.
    const onConnect = (client: pg.ClientBase): unknown => client.query(`SELECT ${set.join(', ')}`);
    const common = { connectionString: databaseUrl, types: ROW_TYPES, keepAlive: true, onConnect };
    return new pg.Pool({ ...common, max: poolSize, idleTimeoutMillis: 0 });
  };
  const pools = { writer: pool('writer'), reader: pool('reader') };
  let transaction: pg.PoolClient | undefined;
  return {
    async send(statement, values) {
      const { role, text, name } = statement;
      const client = (role === 'writer' ? transaction : undefined) ?? (await pools[role].connect());
      if (role === 'writer') transaction = client;
      if (name !== '') await client.query({ name, text, values: [...(values ?? [])] });
      else if (values === null) await client.query(text);
      else await client.query(text, [...values]);
      if (role === 'writer') {
        if (!/^\s*(COMMIT|ROLLBACK|END)\b|;\s*COMMIT\s*$/i.test(text)) return;
        transaction = undefined;
      }
      client.release();
    },
  };
}
