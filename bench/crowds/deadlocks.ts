import pg from 'pg';

/** Deadlocks that PostgreSQL has broken since it began to count; undefined on SQLite, which has one writer. */
export async function deadlocksOf(url: string): Promise<number | undefined> {
  if (url.startsWith('sqlite')) return undefined;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ deadlocks: string }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    );
    return Number(rows[0]?.deadlocks ?? 0);
  } finally {
    await client.end();
  }
}
