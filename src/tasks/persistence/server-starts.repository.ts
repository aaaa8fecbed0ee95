import type { Instant } from '../../common/clock.js';
import type { SqlExecutor } from '../../persistence/unit-of-work.js';

/** A number greater than that of every start before. */
export async function allocateEpoch(sql: SqlExecutor, now: Instant): Promise<number> {
  const { rows } = await sql.query<{ epoch: number }>(
    `INSERT INTO server_starts (epoch, started_at)
     SELECT COALESCE(MAX(epoch), 0) + 1, $1 FROM server_starts RETURNING epoch`,
    [now],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('no epoch was allocated');
  return row.epoch;
}
