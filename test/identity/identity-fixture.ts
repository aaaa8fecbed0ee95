import { Deadline } from '../../src/common/deadline.js';
import { Accounts } from '../../src/identity/accounts.js';
import type { CreatedToken } from '../../src/identity/accounts.js';
import { AgentTokens } from '../../src/identity/agent-tokens.js';
import { Authenticator } from '../../src/identity/authenticator.js';
import type { AuthMode } from '../../src/identity/authenticator.js';
import { AccessTokensRepository } from '../../src/identity/persistence/access-tokens.repository.js';
import { UsersRepository } from '../../src/identity/persistence/users.repository.js';
import { TokenUse } from '../../src/identity/token-use.js';
import { Log } from '../../src/observability/log.js';
import type { TestDatabase, TestEngine } from '../support/engines.js';
import { TestClock } from '../support/test-clock.js';

export const soon = (): Deadline => Deadline.after(10_000);

/** The identity services over a database of the test's own and a clock that stands still. */
export interface IdentityFixture {
  readonly database: TestDatabase;
  readonly clock: TestClock;
  readonly log: Log;
  /** The events of its records. */
  readonly logged: string[];
  readonly accounts: Accounts;
  readonly use: TokenUse;
  readonly tokens: AccessTokensRepository;
  readonly enforced: Authenticator;
  readonly disabled: Authenticator;
  readonly userToken: (userName: string, lifetimeMs?: number) => Promise<CreatedToken>;
  /** A task and a session whose agent has the token. */
  readonly agentToken: (sessionId: string) => Promise<string>;
  /** Ends what would still write. */
  readonly close: () => Promise<void>;
}

export async function identityFixture(engine: TestEngine): Promise<IdentityFixture> {
  const database = await engine.createDatabase();
  const clock = new TestClock();
  const logged: string[] = [];
  const write = (line: string) => void logged.push((JSON.parse(line) as { event: string }).event);
  const log = new Log({ level: 'debug', format: 'json', destination: { write } });
  const users = new UsersRepository();
  const tokens = new AccessTokensRepository(database.reader);
  const accounts = new Accounts(database.unitOfWork, users, tokens, clock);
  const use = new TokenUse(database.unitOfWork, tokens, clock, log);
  const authenticator = (mode: AuthMode) => new Authenticator(mode, tokens, use, clock);
  return {
    database,
    clock,
    log,
    logged,
    accounts,
    use,
    tokens,
    enforced: authenticator('enforced'),
    disabled: authenticator('disabled'),
    userToken: async (userName, lifetimeMs) => {
      await accounts.createUser(userName, soon());
      return accounts.createToken({ userName, name: '', lifetimeMs: lifetimeMs ?? null }, soon());
    },
    agentToken: async (sessionId) => {
      const { token, hash } = new AgentTokens().issue();
      const now = clock.now();
      await database.sql(
        `INSERT INTO tasks (id, title, created_at, updated_at) VALUES ($1, 'a task', $2, $2) ON CONFLICT DO NOTHING`,
        [`task of ${sessionId}`, now],
      );
      await database.sql(
        `INSERT INTO task_sessions (id, task_id, agent_token_hash, started_at, updated_at) VALUES ($1, $2, $3, $4, $4)
         ON CONFLICT (id) DO UPDATE SET agent_token_hash = excluded.agent_token_hash`,
        [sessionId, `task of ${sessionId}`, hash, now],
      );
      return token;
    },
    close: async () => {
      await use.beforeApplicationShutdown();
      await database.close();
    },
  };
}
