import type { Clock } from '../common/clock.js';
import type { Deadline } from '../common/deadline.js';
import { UnauthorizedError } from '../common/domain-error.js';
import { UNSCOPED } from './caller.js';
import type { Caller } from './caller.js';
import type { AccessTokensRepository } from './persistence/access-tokens.repository.js';
import type { TokenUse } from './token-use.js';
import { agentTokenId, hashToken, presentedToken, tokenKind } from './tokens.js';

export type AuthMode = 'disabled' | 'enforced';

/**
 * Tells who is calling from the `Authorization` header.
 *
 * A token that is sent is honoured, and can fail, in both modes; only a caller that sends no header at all is the
 * synthetic identity while authentication is off. Every refusal is the same one, so that it tells nothing about why.
 */
export class Authenticator {
  constructor(
    private readonly mode: AuthMode,
    private readonly tokens: AccessTokensRepository,
    private readonly use: TokenUse,
    private readonly clock: Clock,
  ) {}

  /** @throws UnauthorizedError for a missing, malformed, unknown, expired or revoked token */
  async authenticate(authorization: string | undefined, deadline: Deadline): Promise<Caller> {
    if (authorization === undefined && this.mode === 'disabled') return UNSCOPED;
    const token = presentedToken(authorization) ?? '';
    const caller = await this.identify(token, deadline);
    if (caller === undefined) {
      throw new UnauthorizedError('a valid access token is required, sent as "Authorization: Bearer TOKEN"');
    }
    return caller;
  }

  private async identify(token: string, deadline: Deadline): Promise<Caller | undefined> {
    const kind = tokenKind(token);
    if (kind === undefined) return undefined;
    const hash = hashToken(token);
    return kind === 'user' ? this.identifyUser(hash, deadline) : this.identifyAgent(hash, deadline);
  }

  private async identifyUser(hash: string, deadline: Deadline): Promise<Caller | undefined> {
    const token = await this.tokens.findByHash(deadline, hash);
    if (token === undefined || token.revokedAt !== null) return undefined;
    if (token.expiresAt !== null && token.expiresAt <= this.clock.now()) return undefined;
    this.use.seen(token);
    return {
      kind: 'user',
      userId: token.userId,
      userName: token.userName,
      tokenId: token.id,
      ...(token.expiresAt === null ? {} : { expiresAt: token.expiresAt }),
    };
  }

  private async identifyAgent(hash: string, deadline: Deadline): Promise<Caller | undefined> {
    const sessionId = await this.tokens.findSessionByAgentHash(deadline, hash);
    return sessionId === undefined ? undefined : { kind: 'agent', sessionId, tokenId: agentTokenId(hash) };
  }
}
