import { Injectable } from '@nestjs/common';
import { Clock, plusMilliseconds } from '../common/clock.js';
import type { Instant } from '../common/clock.js';
import type { Deadline } from '../common/deadline.js';
import { ConflictError, NotFoundError, ValidationError } from '../common/domain-error.js';
import { usableId } from '../common/ids.js';
import { newRowId } from '../common/row-id.js';
import { codePointLength, isStorableText } from '../common/text.js';
import { UnitOfWork } from '../persistence/unit-of-work.js';
import type { SqlExecutor } from '../persistence/unit-of-work.js';
import type { AccessToken } from './persistence/access-tokens.repository.js';
import { AccessTokensRepository } from './persistence/access-tokens.repository.js';
import type { User } from './persistence/users.repository.js';
import { UsersRepository } from './persistence/users.repository.js';
import { issueToken } from './tokens.js';

const MAX_NAME_LENGTH = 100;

/** `token` is told here and never again. */
export interface CreatedToken {
  readonly id: string;
  readonly token: string;
  readonly expiresAt: Instant | null;
}

/** An operator's moves on users and their tokens. Names keep their case; two that differ only in it are two names. */
@Injectable()
export class Accounts {
  constructor(
    private readonly unitOfWork: UnitOfWork,
    private readonly users: UsersRepository,
    private readonly tokens: AccessTokensRepository,
    private readonly clock: Clock,
  ) {}

  /** @throws ValidationError, ConflictError when the name is taken */
  async createUser(name: string, deadline: Deadline): Promise<User> {
    const user = { id: newRowId(), name: usableName('name', name), createdAt: this.clock.now() };
    const isNew = await this.unitOfWork.run('user.create', deadline, (tx) => this.users.insert(tx, user));
    if (!isNew) throw new ConflictError(`there is already a user named "${user.name}"`);
    return user;
  }

  /** @throws ValidationError, NotFoundError when there is no such user */
  async createToken(
    input: { userName: string; name: string; lifetimeMs: number | null },
    deadline: Deadline,
  ): Promise<CreatedToken> {
    const name = input.name === '' ? '' : usableName('name', input.name);
    const { token, hash } = issueToken('user');
    const id = newRowId();
    return this.unitOfWork.run('token.create', deadline, async (tx) => {
      const user = await this.requireUser(tx, input.userName);
      const createdAt = this.clock.now();
      const expiresAt = input.lifetimeMs === null ? null : plusMilliseconds(createdAt, input.lifetimeMs);
      await this.tokens.insert(tx, { id, userId: user.id, name, hash, createdAt, expiresAt });
      return { id, token, expiresAt };
    });
  }

  /** @throws ValidationError, NotFoundError */
  async requireUser(sql: SqlExecutor, userName: string): Promise<User> {
    const name = usableName('user', userName);
    const user = await this.users.findByName(sql, name);
    if (user === undefined) throw new NotFoundError(`there is no user named "${name}"`);
    return user;
  }

  listTokens(deadline: Deadline): Promise<AccessToken[]> {
    return this.tokens.list(deadline);
  }

  /**
   * When the token was revoked: now, or before, if it already had been. What it holds open in a running server ends
   * within a {@link CallerLifetime} period.
   *
   * @throws NotFoundError when there is no such token
   */
  async revokeToken(id: string, deadline: Deadline): Promise<Instant> {
    const now = this.clock.now();
    const revokedAt = await this.unitOfWork.run('token.revoke', deadline, (tx) =>
      this.tokens.revoke(tx, usableId(id), now),
    );
    if (revokedAt === undefined) throw new NotFoundError(`there is no token with the id "${id}"`);
    return revokedAt;
  }
}

/** One composed form, so that a name typed on another keyboard is the same name. */
function usableName(field: string, text: string): string {
  const name = text.normalize('NFC');
  if (!isStorableText(name) || /\p{Cc}/u.test(name))
    throw new ValidationError(field, 'must not hold control characters');
  if (name !== name.trim() || name === '')
    throw new ValidationError(field, 'must not be empty, or begin or end with a space');
  if (codePointLength(name) > MAX_NAME_LENGTH) {
    throw new ValidationError(field, `must have at most ${MAX_NAME_LENGTH} characters`);
  }
  return name;
}
