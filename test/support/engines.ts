import { afterAll, describe } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { dialectOf, type Dialect, type Engine } from '../../src/persistence/dialect.js';
import { openDatabase } from '../../src/persistence/open-database.js';
import type { Reader, SqlResult, SqlRow, SqlValue, UnitOfWork } from '../../src/persistence/unit-of-work.js';
import { postgresTemplates } from './postgres-templates.js';
import { sqliteTemplates } from './sqlite-templates.js';
import type { Templates } from './templates.js';

/** An open database of one test's own. */
export interface TestDatabase {
  readonly engine: Engine;
  /** For a second process, application or connection on the same database. */
  readonly url: string;
  readonly dialect: Dialect;
  readonly unitOfWork: UnitOfWork;
  readonly reader: Reader;
  /** One statement in a transaction of its own: to plant and to look at rows. `$1 … $n` on both engines. */
  sql<Row = SqlRow>(text: string, params?: readonly SqlValue[]): Promise<SqlResult<Row>>;
  /** Also done after the last test of the block, for databases left open. */
  close(): Promise<void>;
}

export interface TestDatabaseOptions {
  /** Default true. False gives an empty database, opened without running the migrations. */
  readonly migrated?: boolean;
  /** PostgreSQL. Default 10. */
  readonly poolSize?: number;
  /** Longest wait for a connection, and longest read. Default 10,000. */
  readonly boundMs?: number;
}

export interface TestEngine {
  readonly name: Engine;
  readonly dialect: Dialect;
  createDatabase(options?: TestDatabaseOptions): Promise<TestDatabase>;
  /**
   * The address of a fresh database that nothing has opened, for an application under test to open.
   * @param options.isKept until the end of the run, which removes all of them faster
   */
  createUrl(options?: Pick<TestDatabaseOptions, 'migrated'> & { readonly isKept?: boolean }): Promise<string>;
}

const TEMPLATES: Record<Engine, Templates> = { sqlite: sqliteTemplates, postgres: postgresTemplates };

/** Runs the same tests on both real databases. */
export function describeEachEngine(title: string, body: (engine: TestEngine) => void): void {
  for (const engine of ['sqlite', 'postgres'] as const) describeEngine(engine, title, body);
}

/** For what only one of them can show. */
export function describeEngine(name: Engine, title: string, body: (engine: TestEngine) => void): void {
  describe(`${title} (${name})`, () => {
    const cleanUps: (() => Promise<void>)[] = [];
    afterAll(async () => {
      for (const cleanUp of cleanUps.reverse()) await cleanUp();
    });
    body({
      name,
      dialect: dialectOf(name),
      createDatabase: async (options = {}) => {
        const database = await open(name, options);
        cleanUps.push(() => database.close());
        return database;
      },
      createUrl: async (options = {}) => {
        const url = await TEMPLATES[name].copy(options.migrated ?? true);
        if (options.isKept !== true) cleanUps.push(() => TEMPLATES[name].remove(url));
        return url;
      },
    });
  });
}

async function open(name: Engine, options: TestDatabaseOptions): Promise<TestDatabase> {
  const url = await TEMPLATES[name].copy(options.migrated ?? true);
  const database = await openDatabase({
    url: parseDatabaseUrl(url),
    poolSize: options.poolSize ?? 10,
    boundMs: options.boundMs ?? 10_000,
    migrate: false,
  });
  let closing: Promise<void> | undefined;
  return {
    engine: name,
    url,
    dialect: dialectOf(name),
    unitOfWork: database.unitOfWork,
    reader: database.reader,
    sql: (text, params = []) =>
      database.unitOfWork.run('test.sql', Deadline.after(10_000), (tx) => tx.query(text, params)),
    close: () => (closing ??= database.close().then(() => TEMPLATES[name].remove(url))),
  };
}
