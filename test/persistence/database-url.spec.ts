import { describe, expect, it } from '@jest/globals';
import { DatabaseUrlError, parseDatabaseUrl } from '../../src/persistence/database-url.js';

describe('a database URL', () => {
  it.each([
    ['sqlite:./data/clarion.db', './data/clarion.db'],
    ['sqlite:data/clarion.db', 'data/clarion.db'],
    ['sqlite:/var/lib/clarion.db', '/var/lib/clarion.db'],
    ['sqlite:///var/lib/clarion.db', '/var/lib/clarion.db'],
    ['sqlite:./with space & ü.db', './with space & ü.db'],
  ])('%s names a file', (text, file) => {
    expect(parseDatabaseUrl(text)).toEqual({ engine: 'sqlite', file, display: `sqlite:${file}` });
  });

  it.each([
    ['postgres://clarion@db.example.org/clarion', 'postgres://db.example.org/clarion'],
    ['postgresql://db.example.org:5433/clarion', 'postgres://db.example.org:5433/clarion'],
    ['postgres://u:s3cret@[::1]:5432/clarion?sslmode=require&password=s3cret', 'postgres://[::1]:5432/clarion'],
    ['postgres:///clarion?host=/run/postgresql&password=s3cret', 'postgres:///run/postgresql/clarion'],
  ])('%s is shown without user, password and parameters', (text, display) => {
    expect(parseDatabaseUrl(text)).toEqual({ engine: 'postgres', connectionString: text, display });
  });

  it.each([
    '',
    'clarion.db',
    'mysql://u:s3cret@host/db',
    'sqlite:',
    'sqlite://',
    'sqlite::memory:',
    'sqlite:./folder/',
    'sqlite:file:x?mode=memory',
    'sqlite:a.db?mode=ro',
    'postgres://',
    'postgres://u:s3cret@host',
    'postgres://u:s3cret@host:port/db',
    'POSTGRES',
  ])('%j is refused, without being repeated', (text) => {
    expect(() => parseDatabaseUrl(text)).toThrow(DatabaseUrlError);
    expect(() => parseDatabaseUrl(text)).toThrow(/^must (be|name) /);
    expect(() => parseDatabaseUrl(text)).not.toThrow(/s3cret/);
  });
});
