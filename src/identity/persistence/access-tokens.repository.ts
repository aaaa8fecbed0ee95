import { Injectable } from '@nestjs/common';
import type { Instant } from '../../common/clock.js';
import type { Deadline } from '../../common/deadline.js';
import { Reader } from '../../persistence/unit-of-work.js';
import type { Tx } from '../../persistence/unit-of-work.js';

export interface NewAccessToken {
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  readonly hash: string;
  readonly createdAt: Instant;
  readonly expiresAt: Instant | null;
}

export interface AccessToken {
  readonly id: string;
  readonly userId: string;
  readonly userName: string;
  readonly name: string;
  readonly createdAt: Instant;
  readonly lastUsedAt: Instant | null;
  readonly expiresAt: Instant | null;
  readonly revokedAt: Instant | null;
}

/** What still holds of the tokens asked about; one that is missing here was revoked, replaced or deleted. */
export interface StandingTokens {
  /** By user token id: when it will expire, or has. */
  readonly users: ReadonlyMap<string, Instant | null>;
  /** By session id: the hash of the agent token that works now. */
  readonly agents: ReadonlyMap<string, string>;
}

interface AccessTokenSql {
  id: string;
  user_id: string;
  user_name: string;
  name: string;
  created_at: Instant;
  last_used_at: Instant | null;
  expires_at: Instant | null;
  revoked_at: Instant | null;
}

const SELECT_TOKENS = `SELECT t.id, t.user_id, u.name AS user_name, t.name, t.created_at, t.last_used_at, t.expires_at,
    t.revoked_at
  FROM access_tokens t JOIN users u ON u.id = t.user_id`;

function toAccessToken(row: AccessTokenSql): AccessToken {
  return {
    id: row.id,
    userId: row.user_id,
    userName: row.user_name,
    name: row.name,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
  };
}

/** User tokens, and the look-ups of sessions' agent tokens: everything that a presented token can be. */
@Injectable()
export class AccessTokensRepository {
  constructor(private readonly reader: Reader) {}

  async insert(tx: Tx, token: NewAccessToken): Promise<void> {
    await tx.query(
      `INSERT INTO access_tokens (id, user_id, name, token_hash, created_at, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6)`,
      [token.id, token.userId, token.name, token.hash, token.createdAt, token.expiresAt],
    );
  }

  /** Revoked and expired ones too: their time is the caller's to judge, by its clock. */
  async findByHash(deadline: Deadline, hash: string): Promise<AccessToken | undefined> {
    const { rows } = await this.reader.query<AccessTokenSql>(deadline, `${SELECT_TOKENS} WHERE t.token_hash = $1`, [
      hash,
    ]);
    return rows[0] === undefined ? undefined : toAccessToken(rows[0]);
  }

  /** The session whose agent the token is. */
  async findSessionByAgentHash(deadline: Deadline, hash: string): Promise<string | undefined> {
    const { rows } = await this.reader.query<{ id: string }>(
      deadline,
      'SELECT id FROM task_sessions WHERE agent_token_hash = $1',
      [hash],
    );
    return rows[0]?.id;
  }

  /** Oldest first. */
  async list(deadline: Deadline): Promise<AccessToken[]> {
    const { rows } = await this.reader.query<AccessTokenSql>(deadline, `${SELECT_TOKENS} ORDER BY t.created_at, t.id`);
    return rows.map(toAccessToken);
  }

  /** When the token was revoked: `at`, or earlier if it already had been. `undefined` when there is no such token. */
  async revoke(tx: Tx, id: string, at: Instant): Promise<Instant | undefined> {
    const { rows } = await tx.query<{ revoked_at: Instant }>(
      'UPDATE access_tokens SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 RETURNING revoked_at',
      [id, at],
    );
    return rows[0]?.revoked_at;
  }

  /** Never moves a later use back: another process may have recorded one. */
  async recordUse(tx: Tx, ids: readonly string[], at: Instant): Promise<void> {
    await tx.query(
      `UPDATE access_tokens SET last_used_at = $2
       WHERE id IN ${tx.dialect.boundTexts('$1')} AND (last_used_at IS NULL OR last_used_at < $2)`,
      [JSON.stringify(ids), at],
    );
  }

  /** One statement for any number of tokens. */
  async findStanding(
    deadline: Deadline,
    tokenIds: readonly string[],
    sessionIds: readonly string[],
  ): Promise<StandingTokens> {
    const { dialect } = this.reader;
    const { rows } = await this.reader.query<{ kind: string; id: string; expires_at: string | null; hash: string }>(
      deadline,
      `SELECT 'user' AS kind, id, expires_at, '' AS hash FROM access_tokens
         WHERE id IN ${dialect.boundTexts('$1')} AND revoked_at IS NULL
       UNION ALL
       SELECT 'agent', id, NULL, agent_token_hash FROM task_sessions
         WHERE id IN ${dialect.boundTexts('$2')} AND agent_token_hash IS NOT NULL`,
      [JSON.stringify(tokenIds), JSON.stringify(sessionIds)],
    );
    return {
      users: new Map(rows.filter((row) => row.kind === 'user').map((row) => [row.id, row.expires_at])),
      agents: new Map(rows.filter((row) => row.kind === 'agent').map((row) => [row.id, row.hash])),
    };
  }
}
