import type { Deadline } from '../../src/common/deadline.js';
import type { Dialect } from '../../src/persistence/dialect.js';
import { Reader, UnitOfWork, type SqlResult, type SqlValue, type Tx } from '../../src/persistence/unit-of-work.js';

export interface RecordedStatement {
  /** The transaction's name, or `read` outside of one. */
  readonly in: string;
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** Writes down every statement that the product sends, by wrapping its two ways to the database. */
export class StatementRecorder {
  readonly statements: RecordedStatement[] = [];

  clear(): void {
    this.statements.length = 0;
  }

  unitOfWork(inner: UnitOfWork): UnitOfWork {
    return new RecordingUnitOfWork(inner, this.statements);
  }

  reader(inner: Reader): Reader {
    return new RecordingReader(inner, this.statements);
  }
}

class RecordingUnitOfWork extends UnitOfWork {
  readonly dialect: Dialect;

  constructor(
    private readonly inner: UnitOfWork,
    private readonly statements: RecordedStatement[],
  ) {
    super();
    this.dialect = inner.dialect;
  }

  override run<T>(name: string, deadline: Deadline, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.inner.run(name, deadline, (tx) =>
      work({
        dialect: tx.dialect,
        deadline: tx.deadline,
        query: (sql, params = []) => {
          this.statements.push({ in: name, sql, params });
          return tx.query(sql, params);
        },
      }),
    );
  }
}

class RecordingReader extends Reader {
  readonly dialect: Dialect;

  constructor(
    private readonly inner: Reader,
    private readonly statements: RecordedStatement[],
  ) {
    super();
    this.dialect = inner.dialect;
  }

  override query<Row>(deadline: Deadline, sql: string, params: readonly SqlValue[] = []): Promise<SqlResult<Row>> {
    this.statements.push({ in: 'read', sql, params });
    return this.inner.query<Row>(deadline, sql, params);
  }
}
