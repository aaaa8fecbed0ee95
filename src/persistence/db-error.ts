import type { Engine } from './dialect.js';

/**
 * What a failed statement means.
 * - `rolled-back`: the database chose this transaction as the victim; the same work may run again at once (R4a).
 * - `unavailable`: out of reach or out of time; nothing was changed by a transaction whose COMMIT was not sent.
 * - `defect`: the statement itself is wrong, or a constraint refused it.
 */
export type FailureKind = 'rolled-back' | 'unavailable' | 'defect';

/** A constraint that refused a row. `other` covers everything else, e.g. text that is not JSON. */
export type Violation = 'unique' | 'foreign_key' | 'not_null' | 'check' | 'other';

/** Every code that is not simply a defect, and why. A code that ends in `*` stands for its class. */
const CODES: Record<Engine, Record<string, [kind: FailureKind, reason: string]>> = {
  sqlite: {
    SQLITE_BUSY: ['rolled-back', 'another process holds the lock'],
    SQLITE_LOCKED: ['rolled-back', 'another connection of this process holds the lock'],
    SQLITE_INTERRUPT: ['unavailable', 'the statement was stopped at its deadline'],
    SQLITE_CANTOPEN: ['unavailable', 'the file is out of reach'],
    SQLITE_IOERR: ['unavailable', 'the disk failed'],
    SQLITE_FULL: ['unavailable', 'the disk is full'],
    SQLITE_NOMEM: ['unavailable', 'out of memory'],
  },
  postgres: {
    '40001': ['rolled-back', 'serialisation failure'],
    '40P01': ['rolled-back', 'dead-lock'],
    '55P03': ['unavailable', 'a lock was not free in time'],
    '57014': ['unavailable', 'the statement was stopped at its deadline'],
    '25P03': ['unavailable', 'the server ended an idle transaction'],
    '25P04': ['unavailable', 'the server ended a long transaction'],
    '08*': ['unavailable', 'the connection failed'],
    '53*': ['unavailable', 'the server is short of connections, memory or disk'],
    '57P*': ['unavailable', 'the server is stopping or starting'],
    '58*': ['unavailable', "the server's disk or system failed"],
    ECONNREFUSED: ['unavailable', 'no server answers'],
    ECONNRESET: ['unavailable', 'the connection broke'],
    EPIPE: ['unavailable', 'the connection broke'],
    ETIMEDOUT: ['unavailable', 'the connection timed out'],
    EHOSTUNREACH: ['unavailable', 'the host is out of reach'],
    ENETUNREACH: ['unavailable', 'the network is out of reach'],
    ENOTFOUND: ['unavailable', 'the host is unknown'],
    EAI_AGAIN: ['unavailable', 'the host name cannot be looked up now'],
  },
};

// What pg, pg-pool and TypeORM say without any code, each about a connection that is gone or was not to be had.
const CONNECTION_LOST =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end|Query runner already released|The server does not support SSL connections)/;

const SQLITE_VIOLATIONS: [RegExp, Violation][] = [
  [/UNIQUE constraint failed/, 'unique'],
  [/FOREIGN KEY constraint failed/, 'foreign_key'],
  [/NOT NULL constraint failed/, 'not_null'],
  [/CHECK constraint failed/, 'check'],
];

const POSTGRES_VIOLATIONS: Record<string, Violation> = {
  '23505': 'unique',
  '23503': 'foreign_key',
  '23502': 'not_null',
  '23514': 'check',
};

/**
 * A statement failed. Made anew from the driver's error, because that one carries values (bound parameters, and in
 * PostgreSQL's detail whole rows) which must reach no log.
 */
export class DatabaseError extends Error {
  constructor(
    message: string,
    /** The engine's own code, e.g. `SQLITE_CONSTRAINT` or `23505`; '' when the driver gave none. */
    readonly driverCode: string,
    readonly kind: FailureKind,
    readonly violation: Violation,
  ) {
    super(message);
    this.name = 'DatabaseError';
  }
}

/** The transaction was undone by the database. {@link UnitOfWork.run} runs its work again; `work` lets it pass. */
export class RolledBackError extends DatabaseError {
  constructor(cause: DatabaseError) {
    super(cause.message, cause.driverCode, cause.kind, cause.violation);
    this.name = 'RolledBackError';
  }
}

/** Translates whatever a driver or TypeORM threw; an error of ours comes back as it is. */
export function databaseErrorOf(engine: Engine, thrown: unknown): DatabaseError {
  if (thrown instanceof DatabaseError) return thrown;
  const error = driverError(thrown);
  const [kind, reason] = classify(engine, error);
  const violation = violationOf(engine, error);
  const told = kind === 'defect' ? tellingMessage(engine, error) : reason;
  const code = error.code === '' ? '' : ` ${error.code}`;
  return kind === 'rolled-back'
    ? new RolledBackError(new DatabaseError(`${engine}${code}: ${told}`, error.code, kind, violation))
    : new DatabaseError(`${engine}${code}: ${told}`, error.code, kind, violation);
}

interface DriverError {
  readonly code: string;
  readonly message: string;
  readonly constraint: string;
}

function driverError(thrown: unknown): DriverError {
  const outer = (thrown ?? {}) as Record<string, unknown>;
  const inner = (outer['driverError'] ?? outer) as Record<string, unknown>;
  // With several addresses for one host Node reports all failures as one AggregateError without a message.
  const first = Array.isArray(inner['errors']) ? (inner['errors'][0] as Record<string, unknown>) : inner;
  const text = (key: string) => {
    const value = inner[key] ?? first[key];
    return typeof value === 'string' ? value : '';
  };
  return { code: text('code'), message: text('message'), constraint: text('constraint') };
}

function classify(engine: Engine, error: DriverError): [FailureKind, string] {
  const table = CODES[engine];
  const known = table[error.code] ?? table[`${error.code.slice(0, 3)}*`] ?? table[`${error.code.slice(0, 2)}*`];
  if (known !== undefined) return known;
  return CONNECTION_LOST.test(error.message) ? ['unavailable', 'no connection'] : ['defect', ''];
}

function violationOf(engine: Engine, error: DriverError): Violation {
  if (engine === 'postgres') return POSTGRES_VIOLATIONS[error.code] ?? 'other';
  return SQLITE_VIOLATIONS.find(([pattern]) => pattern.test(error.message))?.[1] ?? 'other';
}

function tellingMessage(engine: Engine, error: DriverError): string {
  // SQLite names columns and tokens of our own text; so do PostgreSQL's syntax and constraint messages. Its data
  // exceptions (class 22) and others may quote the value.
  if (engine === 'sqlite' || /^(42|23)/.test(error.code)) return error.message.replace(/^SQLITE_[A-Z_]+: /, '');
  return error.code === '' ? error.message : 'the statement was refused';
}
