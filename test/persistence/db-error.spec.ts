import { describe, expect, it } from '@jest/globals';
import { databaseErrorOf, DatabaseError, RolledBackError } from '../../src/persistence/db-error.js';

/** As TypeORM throws it: the statement and its values on the outside, the driver's error within. */
function thrown(driverError: object): unknown {
  return Object.assign(new Error('failed'), { query: 'SELECT', parameters: ['secret'], driverError });
}

describe('a failure of the driver', () => {
  it.each([
    ['postgres', { code: '40001', message: 'could not serialize' }, 'rolled-back'],
    ['postgres', { code: '40P01', message: 'deadlock detected' }, 'rolled-back'],
    ['postgres', { code: '55P03', message: 'lock not available' }, 'unavailable'],
    ['postgres', { code: '57014', message: 'canceling statement' }, 'unavailable'],
    ['postgres', { code: '57P01', message: 'terminating connection' }, 'unavailable'],
    ['postgres', { code: '53300', message: 'too many clients' }, 'unavailable'],
    ['postgres', { code: '08006', message: 'connection failure' }, 'unavailable'],
    ['postgres', { code: 'ECONNREFUSED', message: 'connect ECONNREFUSED' }, 'unavailable'],
    ['postgres', { message: '', errors: [{ code: 'ECONNREFUSED', message: 'x' }] }, 'unavailable'],
    ['postgres', { message: 'timeout exceeded when trying to connect' }, 'unavailable'],
    ['postgres', { message: 'Connection terminated unexpectedly' }, 'unavailable'],
    ['postgres', { code: '23505', message: 'duplicate key' }, 'defect'],
    ['postgres', { code: '42601', message: 'syntax error' }, 'defect'],
    ['postgres', { message: 'something else' }, 'defect'],
    ['sqlite', { code: 'SQLITE_BUSY', message: 'SQLITE_BUSY: database is locked' }, 'rolled-back'],
    ['sqlite', { code: 'SQLITE_INTERRUPT', message: 'SQLITE_INTERRUPT: interrupted' }, 'unavailable'],
    ['sqlite', { code: 'SQLITE_FULL', message: 'SQLITE_FULL: database or disk is full' }, 'unavailable'],
    ['sqlite', { code: 'SQLITE_ERROR', message: 'SQLITE_ERROR: no such table: x' }, 'defect'],
  ] as const)('of %s, %j, means %s', (engine, error, kind) => {
    const translated = databaseErrorOf(engine, thrown(error));
    expect(translated.kind).toBe(kind);
    expect(translated instanceof RolledBackError).toBe(kind === 'rolled-back');
    expect(databaseErrorOf(engine, translated)).toBe(translated);
  });

  it.each([
    ['postgres', { code: '23505' }, 'unique'],
    ['postgres', { code: '23503' }, 'foreign_key'],
    ['postgres', { code: '23502' }, 'not_null'],
    ['postgres', { code: '23514' }, 'check'],
    ['postgres', { code: '22P02' }, 'other'],
    ['sqlite', { code: 'SQLITE_CONSTRAINT', message: 'SQLITE_CONSTRAINT: UNIQUE constraint failed: t.a' }, 'unique'],
    [
      'sqlite',
      { code: 'SQLITE_CONSTRAINT', message: 'SQLITE_CONSTRAINT: FOREIGN KEY constraint failed' },
      'foreign_key',
    ],
    [
      'sqlite',
      { code: 'SQLITE_CONSTRAINT', message: 'SQLITE_CONSTRAINT: NOT NULL constraint failed: t.a' },
      'not_null',
    ],
    ['sqlite', { code: 'SQLITE_CONSTRAINT', message: 'SQLITE_CONSTRAINT: CHECK constraint failed: a' }, 'check'],
    ['sqlite', { code: 'SQLITE_ERROR', message: 'SQLITE_ERROR: malformed JSON' }, 'other'],
  ] as const)('of %s, %j, is the violation %s', (engine, error, violation) => {
    expect(databaseErrorOf(engine, thrown(error)).violation).toBe(violation);
  });

  it('is told without the values that PostgreSQL and TypeORM put into theirs (NO-SECRETS)', () => {
    const errors = [
      thrown({
        code: '22P02',
        message: 'invalid input syntax for type json: "secret"',
        detail: 'secret',
        where: 'secret',
      }),
      thrown({ code: '23505', message: 'duplicate key value', detail: 'Key (id)=(secret) already exists.' }),
      thrown({ code: '22007', message: 'invalid input syntax for timestamp: "secret"' }),
    ];
    for (const error of errors.map((each) => databaseErrorOf('postgres', each))) {
      expect(error).toBeInstanceOf(DatabaseError);
      expect(JSON.stringify([error, error.message, error.stack, error.cause])).not.toContain('secret');
    }
  });
});
