import type { Engine } from './dialect.js';

/** Where the rows live. `display` names the place without user, password or parameters, fit for a log line. */
export type DatabaseUrl =
  | { readonly engine: 'sqlite'; readonly file: string; readonly display: string }
  | { readonly engine: 'postgres'; readonly connectionString: string; readonly display: string };

/** The text is no address of a database. The message starts with "must be" and never repeats the text. */
export class DatabaseUrlError extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = 'DatabaseUrlError';
  }
}

const SCHEMES: Partial<Record<string, Engine>> = {
  'sqlite:': 'sqlite',
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
};

/**
 * Reads `sqlite:./path/to/file.db` or `postgres://user:password@host:5432/name`.
 *
 * @throws DatabaseUrlError
 */
export function parseDatabaseUrl(text: string): DatabaseUrl {
  const scheme = /^[a-z]+:/.exec(text)?.[0] ?? '';
  switch (SCHEMES[scheme]) {
    case 'sqlite':
      return sqliteFile(text.slice(scheme.length));
    case 'postgres':
      return postgresServer(text);
    default:
      throw new DatabaseUrlError('must be sqlite:./path/to/file.db or postgres://user:password@host:5432/name');
  }
}

function sqliteFile(path: string): DatabaseUrl {
  // Memory cannot be shared by a writing and a reading connection, and loses what was promised to be durable.
  if (path === '' || path.includes(':memory:') || /[?#\0]/.test(path) || path.startsWith('file:')) {
    throw new DatabaseUrlError('must be sqlite: followed by the path of a file, e.g. sqlite:./data/clarion.db');
  }
  const file = path.startsWith('//') ? path.slice(2) : path;
  if (file === '' || file.endsWith('/')) {
    throw new DatabaseUrlError('must be sqlite: followed by the path of a file, e.g. sqlite:./data/clarion.db');
  }
  return { engine: 'sqlite', file, display: `sqlite:${file}` };
}

function postgresServer(text: string): DatabaseUrl {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new DatabaseUrlError('must be a valid URL, e.g. postgres://user:password@host:5432/name');
  }
  const name = url.pathname.slice(1);
  if (name === '') {
    throw new DatabaseUrlError('must name a database, e.g. postgres://user:password@host:5432/name');
  }
  const host = url.host === '' ? (url.searchParams.get('host') ?? 'localhost') : url.host;
  return { engine: 'postgres', connectionString: text, display: `postgres://${host}/${name}` };
}
