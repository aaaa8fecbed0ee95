import { describe, expect, it } from '@jest/globals';
import { AgentTokens } from '../../src/identity/agent-tokens.js';
import { agentTokenId, hashToken, issueToken, tokenKind } from '../../src/identity/tokens.js';

describe('tokens', () => {
  it('has one shape, tells its kind, and is never the same twice', () => {
    const tokens = Array.from({ length: 200 }, () => issueToken('user').token);
    for (const token of tokens) expect(token).toMatch(/^clu_[A-Za-z0-9_-]{43}$/);
    expect(new Set(tokens).size).toBe(200);
    expect(new AgentTokens().issue().token).toMatch(/^cla_[A-Za-z0-9_-]{43}$/);
  });

  it('carries 256 random bits', () => {
    const secret = issueToken('user').token.slice('clu_'.length);
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
  });

  it('is stored as its SHA-256, which is pinned because databases hold it', () => {
    expect(hashToken('clu_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA')).toBe(
      'b940c6065537f2e9bec8bbe5599302351d9a57b101c3b32a4aefea3aababaae7',
    );
    const { token, hash } = new AgentTokens().issue();
    expect(hash).toBe(hashToken(token));
    expect(hash.startsWith(agentTokenId(hash))).toBe(true);
    expect(agentTokenId(hash)).toHaveLength(16);
  });

  it.each([
    '',
    'clu_',
    'clu_short',
    `clx_${'A'.repeat(43)}`,
    `CLU_${'A'.repeat(43)}`,
    `clu_${'A'.repeat(44)}`,
    `clu_${'A'.repeat(42)}=`,
    ` clu_${'A'.repeat(43)}`,
    `clu_${'A'.repeat(43)}\n`,
  ])('does not take %j for a token', (text) => {
    expect(tokenKind(text)).toBeUndefined();
  });
});
