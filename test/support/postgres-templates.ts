import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { parseDatabaseUrl } from '../../src/persistence/database-url.js';
import { openDatabase } from '../../src/persistence/open-database.js';
import type { Templates } from './templates.js';

const SERVER = process.env['CLARION_TEST_POSTGRES'] ?? '';
const RUN = process.env['CLARION_TEST_RUN'] ?? '';

/** The server's own database, for making and dropping others. */
async function onServer<T>(act: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: SERVER });
  await client.connect();
  try {
    return await act(client);
  } finally {
    await client.end();
  }
}

function urlOf(database: string): string {
  const url = new URL(SERVER);
  url.pathname = `/${database}`;
  return url.toString();
}

/** Made by whichever worker comes first, once in a run. */
async function template(client: pg.Client, migrated: boolean): Promise<string> {
  const name = `${RUN}_template_${migrated ? 'migrated' : 'empty'}`;
  const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
  if (rowCount === 1) return name;
  await client.query('SELECT pg_advisory_lock(hashtext($1))', [RUN]);
  try {
    const again = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    if (again.rowCount === 1) return name;
    // A language's order, also on a given server, so that a comparison which forgot to be bytewise shows.
    await client.query(
      `CREATE DATABASE "${name}_new" TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`,
    );
    if (migrated) {
      const url = parseDatabaseUrl(urlOf(`${name}_new`));
      const database = await openDatabase({ url, poolSize: 2, boundMs: 10_000 });
      await database.close();
    }
    // Nobody sees it before it is complete.
    await client.query(`ALTER DATABASE "${name}_new" RENAME TO "${name}"`);
    return name;
  } finally {
    await client.query('SELECT pg_advisory_unlock(hashtext($1))', [RUN]);
  }
}

export const postgresTemplates: Templates = {
  async copy(migrated) {
    const name = `${RUN}_${randomBytes(6).toString('hex')}`;
    await onServer(async (client) => {
      await client.query(`CREATE DATABASE "${name}" TEMPLATE "${await template(client, migrated)}"`);
    });
    return urlOf(name);
  },

  async remove(url) {
    const name = new URL(url).pathname.slice(1);
    await onServer((client) => client.query(`DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`));
  },
};
