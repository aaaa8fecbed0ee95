import type { Deadline } from '../../src/common/deadline.js';
import type { Dialect } from '../../src/persistence/dialect.js';
import { UnitOfWork, type SqlValue, type Tx } from '../../src/persistence/unit-of-work.js';

/** P1: the only transaction that may resolve a question. */
const CLAIM = 'bundle.claim';

/**
 * P1, in every test that runs the product: looks at the parameters of each statement outside the claim's transaction,
 * and fails the transaction when one makes a row answered or rejected that was not so before. Others carry such a row's
 * whole document too, to clear its delivery intent, say; that changes no status.
 */
export function watchClaims(inner: UnitOfWork): UnitOfWork {
  return new WatchedUnitOfWork(inner);
}

class WatchedUnitOfWork extends UnitOfWork {
  readonly dialect: Dialect;

  constructor(private readonly inner: UnitOfWork) {
    super();
    this.dialect = inner.dialect;
  }

  override run<T>(name: string, deadline: Deadline, work: (tx: Tx) => Promise<T>): Promise<T> {
    if (name === CLAIM) return this.inner.run(name, deadline, work);
    return this.inner.run(name, deadline, (tx) =>
      work({
        dialect: tx.dialect,
        deadline: tx.deadline,
        query: async (sql, params = []) => {
          if (!mayResolve(sql, params)) return tx.query(sql, params);
          const before = await resolvedAmong(tx, params);
          const result = await tx.query<never>(sql, params);
          const after = await resolvedAmong(tx, params);
          const changed = [...after].filter(([id, status]) => before.get(id) !== status);
          if (changed.length > 0) throw new Error(`P1: ${name} made ${JSON.stringify(changed)} by ${sql}`);
          return result;
        },
      }),
    );
  }
}

/** Whether a statement that writes has such a status in a parameter, or in its own text. */
export function mayResolve(sql: string, params: readonly SqlValue[]): boolean {
  if (!/^\s*(INSERT|UPDATE|REPLACE|MERGE|WITH)\b/i.test(sql)) return false;
  return /'(answered|rejected)'|"(answered|rejected)"/.test(sql) || params.some(isResolvedDocument);
}

/** Also the bare word: a statement may put a document together from parts. */
function isResolvedDocument(param: SqlValue): boolean {
  if (typeof param !== 'string') return false;
  if (/^"?(answered|rejected)"?$/.test(param)) return true;
  if (!param.startsWith('{')) return false;
  const { status } = JSON.parse(param) as { status?: unknown };
  return status === 'answered' || status === 'rejected';
}

/** The resolved rows among those that the parameters name, with their status. */
async function resolvedAmong(tx: Tx, params: readonly SqlValue[]): Promise<Map<string, string>> {
  const ids = params.filter((param): param is string => typeof param === 'string' && !param.startsWith('{'));
  const status = tx.dialect.metadataText('metadata', 'status');
  const { rows } = await tx.query<{ id: string; status: string }>(
    `SELECT id, ${status} AS status FROM task_session_messages
     WHERE type = 'clarification_request' AND ${status} IN ('answered', 'rejected')
       AND id IN (${ids.map((_, index) => `$${index + 1}`).join(', ') || "''"})`,
    ids,
  );
  return new Map(rows.map((row) => [row.id, row.status]));
}
