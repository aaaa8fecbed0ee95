import { Global, Module } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import { Env } from '../config/env.js';
import { Log } from '../observability/log.js';
import { Accounts } from './accounts.js';
import { AgentTokens } from './agent-tokens.js';
import { Authenticator } from './authenticator.js';
import { CallerLifetime } from './caller-lifetime.js';
import { AccessTokensRepository } from './persistence/access-tokens.repository.js';
import { UsersRepository } from './persistence/users.repository.js';
import { TokenUse } from './token-use.js';

/** How long something may stay open after its token was revoked: one small statement is what shortens it. */
const LIFETIME_CHECK_MS = 2_000;

/** Who is calling, and for how long that holds. */
@Global()
@Module({
  providers: [
    UsersRepository,
    AccessTokensRepository,
    Accounts,
    AgentTokens,
    TokenUse,
    {
      provide: Authenticator,
      inject: [Env, AccessTokensRepository, TokenUse, Clock],
      useFactory: (env: Env, tokens: AccessTokensRepository, use: TokenUse, clock: Clock) =>
        new Authenticator(env.authMode, tokens, use, clock),
    },
    {
      provide: CallerLifetime,
      inject: [AccessTokensRepository, Clock, Log],
      useFactory: (tokens: AccessTokensRepository, clock: Clock, log: Log) =>
        new CallerLifetime(tokens, clock, log, LIFETIME_CHECK_MS),
    },
  ],
  exports: [Authenticator, AgentTokens, Accounts, CallerLifetime, TokenUse],
})
export class IdentityModule {}
