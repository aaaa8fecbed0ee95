import type { Database, Statement } from 'sqlite3';

/** Rows of a statement that gives rows, else how many it changed. */
export interface RawResult {
  readonly rows: readonly unknown[];
  readonly affected: number;
}

// More than the texts that this product has; whatever exceeds it costs a preparation, not memory.
const LIMIT = 200;

// An EXPLAIN that has given its last row still counts as running, and would bar every COMMIT.
const KEPT = /^\s*(SELECT|WITH|INSERT|UPDATE|DELETE|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)\b/i;

/**
 * The statements of one connection, each compiled once. Compiling is most of what one of our short statements costs.
 * The caller makes sure that one runs at a time: finalising beside a running one would block the event loop.
 *
 * None that is kept is left running, with a snapshot, a lock or an interrupt that would stop the next one: SQLite ends
 * those that have been stepped to their end, and one that failed, which it may not have ended (SQLITE_BUSY), is finalised.
 * After a change of the schema SQLite compiles a statement again on its own.
 */
export class PreparedStatements {
  /** In the order of their last use. */
  private readonly kept = new Map<string, Statement>();

  constructor(
    private readonly database: Database,
    private readonly limit: number = LIMIT,
  ) {}

  get size(): number {
    return this.kept.size;
  }

  /** @throws what the driver says, when compiling or running fails */
  async run(text: string, values: readonly unknown[], returnsRows: boolean): Promise<RawResult> {
    const known = this.kept.get(text);
    this.kept.delete(text);
    const statement = known ?? (await this.compile(text));
    try {
      const result = await (returnsRows ? all(statement, values) : run(statement, values));
      if (known === undefined && !KEPT.test(text)) await finalize(statement);
      else this.kept.set(text, statement);
      return result;
    } catch (error) {
      await finalize(statement);
      throw error;
    }
  }

  /** Before the connection is closed, which SQLite refuses while statements are left. */
  async close(): Promise<void> {
    for (const [text, statement] of this.kept) {
      this.kept.delete(text);
      await finalize(statement);
    }
  }

  private async compile(text: string): Promise<Statement> {
    for (const [oldest, statement] of this.kept) {
      if (this.kept.size < this.limit) break;
      this.kept.delete(oldest);
      await finalize(statement);
    }
    return new Promise<Statement>((resolve, reject) => {
      const statement = this.database.prepare(text, (error) => {
        if (error === null) resolve(statement);
        else reject(error);
      });
    });
  }
}

function finalize(statement: Statement): Promise<void> {
  return new Promise((resolve) => statement.finalize(() => resolve()));
}

function all(statement: Statement, values: readonly unknown[]): Promise<RawResult> {
  return new Promise((resolve, reject) => {
    statement.all(values, (error, rows) => {
      if (error === null) resolve({ rows, affected: rows.length });
      else reject(error);
    });
  });
}

function run(statement: Statement, values: readonly unknown[]): Promise<RawResult> {
  return new Promise((resolve, reject) => {
    statement.run(values, function (error) {
      if (error === null) resolve({ rows: [], affected: this.changes });
      else reject(error);
    });
  });
}
