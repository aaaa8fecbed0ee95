import pg from 'pg';

/** What the service's own connections to one database are doing, as the server sees it. */
export interface Activity {
  readonly connections: number;
  /** Running a statement, or inside a transaction. */
  readonly busy: number;
}

export async function postgresActivity(url: string): Promise<Activity> {
  const client = new pg.Client({ connectionString: url, application_name: 'activity' });
  await client.connect();
  try {
    const { rows } = await client.query<{ connections: number; busy: number }>(
      `SELECT count(*)::int AS connections, (count(*) FILTER (WHERE state <> 'idle'))::int AS busy
         FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'clarion'`,
    );
    return rows[0] ?? { connections: 0, busy: 0 };
  } finally {
    await client.end();
  }
}
