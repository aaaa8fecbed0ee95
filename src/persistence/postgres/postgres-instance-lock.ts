import pg from 'pg';
import { StartupError } from '../../common/startup-error.js';
import type { DatabaseUrl } from '../database-url.js';
import { databaseErrorOf } from '../db-error.js';
import type { InstanceLock } from '../instance-lock.js';
import { succeedsWithin } from '../succeeds-within.js';

type PostgresUrl = DatabaseUrl & { engine: 'postgres' };

const CONNECT_MS = 5000;
// The server may take a moment to see that the process of an earlier lock is gone.
const WAIT_MS = 500;
const POLL_MS = 50;
const RECONNECT_MS = 1000;
// A connection that is silently dead would let go of the lock on the server's side without a word here.
const HEARTBEAT_MS = 5000;

// Two installations in two schemas of one database are two. The first number means nothing else in the database.
const KEY = 'hashtext(current_schema()::text)';
const CLASS = 4_711_002;

/**
 * An advisory lock on a connection of its own, which the server frees when the connection ends. When that happens to
 * a running process it takes the lock again; only if another server was quicker must it stop.
 */
export async function lockPostgres(url: PostgresUrl, onLost: (error: StartupError) => void): Promise<InstanceLock> {
  const lock = new PostgresInstanceLock(url, onLost);
  try {
    await lock.acquire();
  } catch (error) {
    await lock.release();
    if (error instanceof StartupError) throw error;
    const { message } = databaseErrorOf('postgres', error);
    throw new StartupError(`cannot open the database ${url.display}: ${message}`, { cause: error });
  }
  return lock;
}

class PostgresInstanceLock implements InstanceLock {
  private client: pg.Client | undefined;
  private serverProcess: number | undefined;
  private readonly timers = new Set<NodeJS.Timeout>();
  private released = false;

  constructor(
    private readonly url: PostgresUrl,
    private readonly onLost: (error: StartupError) => void,
  ) {}

  /** @throws StartupError when another server has it, else whatever the connection failed with */
  async acquire(): Promise<void> {
    const client = await this.connect();
    for (let waited = 0; !(await this.tryLock(client)); waited += POLL_MS) {
      if (waited >= WAIT_MS) {
        throw new StartupError(`another server is running on ${this.url.display}; stop it first`);
      }
      await this.pause(POLL_MS);
    }
    this.serverProcess = await processOf(client);
    client.once('end', () => {
      if (!this.released) void this.acquireAgain();
    });
    void this.watch(client);
  }

  async release(): Promise<void> {
    this.released = true;
    for (const timer of this.timers) clearTimeout(timer);
    await this.client?.end().catch(() => undefined);
  }

  private async acquireAgain(): Promise<void> {
    while (!this.released) {
      try {
        await this.acquire();
        return;
      } catch (error) {
        await this.client?.end().catch(() => undefined);
        if (error instanceof StartupError) {
          if (!this.released) this.onLost(error);
          return;
        }
        // No connection, so nobody else can have taken the lock over it either; keep trying.
        await this.pause(RECONNECT_MS);
      }
    }
  }

  private async connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.url.connectionString,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      application_name: 'clarion instance lock',
    });
    this.client = client;
    // An error is followed by 'end', which is what is acted on.
    client.on('error', () => undefined);
    await client.connect();
    // It idles for ever, on purpose; servers before 14 have no such setting.
    await client.query(
      "SELECT set_config('idle_session_timeout', '0', false) WHERE current_setting('idle_session_timeout', true) IS NOT NULL",
    );
    return client;
  }

  private async tryLock(client: pg.Client): Promise<boolean> {
    const { rows } = await client.query<{ locked: boolean }>(`SELECT pg_try_advisory_lock(${CLASS}, ${KEY}) AS locked`);
    if (rows[0]?.locked === true) return true;
    // Our own earlier connection, which the server does not know to be dead yet, is in nobody's way.
    if (this.serverProcess !== undefined) {
      await client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_locks
          WHERE locktype = 'advisory' AND classid = ${CLASS} AND pid = $1 AND granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        [this.serverProcess],
      );
    }
    return false;
  }

  private async watch(client: pg.Client): Promise<void> {
    while (!this.released && this.client === client) {
      await this.pause(HEARTBEAT_MS);
      if (this.released) return;
      const alive = await succeedsWithin(HEARTBEAT_MS, () => client.query('SELECT 1'));
      if (!alive) {
        // With a query under way this destroys the socket at once, and 'end' follows.
        void client.end().catch(() => undefined);
        return;
      }
    }
  }

  /** Keeps no process alive; never resolves once released. */
  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.timers.delete(timer);
        resolve();
      }, milliseconds);
      timer.unref();
      this.timers.add(timer);
    });
  }
}

async function processOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid;
}
