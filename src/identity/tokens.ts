import { createHash, randomBytes } from 'node:crypto';

export type TokenKind = 'user' | 'agent';

/** `token` is shown once and never stored; `hash` is what the database keeps. */
export interface IssuedToken {
  readonly token: string;
  readonly hash: string;
}

/** Prefixes let people, logs and secret scanners tell a token, and the kinds apart, at a glance. */
const PREFIX: Record<TokenKind, string> = { user: 'clu_', agent: 'cla_' };
const SHAPE = /^cl([ua])_[A-Za-z0-9_-]{43}$/;

/** 256 random bits in base64url behind the kind's prefix: always 47 characters. */
export function issueToken(kind: TokenKind): IssuedToken {
  const token = PREFIX[kind] + randomBytes(32).toString('base64url');
  return { token, hash: hashToken(token) };
}

/** SHA-256 in hex. The token is random enough that neither salt nor a slow hash adds anything. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex');
}

/** RFC 9110: the scheme in any case, one or more spaces, the credentials. */
const BEARER = /^bearer +(\S+)$/i;

/** What an `Authorization` header presents as a token, whatever that looks like. */
export function presentedToken(authorization: string | undefined): string | undefined {
  return BEARER.exec(authorization ?? '')?.[1];
}

/** The kind of a token of the right shape, whether it exists or not; `undefined` for anything else. */
export function tokenKind(text: string): TokenKind | undefined {
  const letter = SHAPE.exec(text)?.[1];
  if (letter === undefined) return undefined;
  return letter === 'u' ? 'user' : 'agent';
}

/** Names one of a session's successive agent tokens in logs and watches, without the power of the hash itself. */
export function agentTokenId(hash: string): string {
  return hash.slice(0, 16);
}
