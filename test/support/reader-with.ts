import type { Deadline } from '../../src/common/deadline.js';
import { Reader, type SqlResult, type SqlValue } from '../../src/persistence/unit-of-work.js';

/** A reader that first does something about each statement: fails, or takes its time. */
export function readerWith(inner: Reader, before: (sql: string, deadline: Deadline) => void | Promise<void>): Reader {
  return new InterceptedReader(inner, before);
}

class InterceptedReader extends Reader {
  constructor(
    private readonly inner: Reader,
    private readonly before: (sql: string, deadline: Deadline) => void | Promise<void>,
  ) {
    super();
  }

  get dialect() {
    return this.inner.dialect;
  }

  override async query<Row>(
    deadline: Deadline,
    sql: string,
    params: readonly SqlValue[] = [],
  ): Promise<SqlResult<Row>> {
    await this.before(sql, deadline);
    return this.inner.query<Row>(deadline, sql, params);
  }
}
