import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { ConflictError, NotFoundError, ValidationError } from '../../src/common/domain-error.js';
import { hashToken } from '../../src/identity/tokens.js';
import { describeEachEngine } from '../support/engines.js';
import { identityFixture, soon } from './identity-fixture.js';
import type { IdentityFixture } from './identity-fixture.js';

describeEachEngine('users and their tokens', (engine) => {
  let fixture: IdentityFixture;

  beforeEach(async () => {
    fixture = await identityFixture(engine);
  });

  afterEach(() => fixture.close());

  it('keeps names unique, also among callers of the same instant', async () => {
    const { accounts, database } = fixture;
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => accounts.createUser('ada', soon())));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results) {
      if (result.status === 'rejected')
        expect(result.reason).toEqual(new ConflictError('there is already a user named "ada"'));
    }
    expect((await database.sql('SELECT id FROM users')).rows).toHaveLength(1);
  });

  it('takes Ada and ada for two names, and both ways to write é for one', async () => {
    const { accounts } = fixture;
    await accounts.createUser('ada', soon());
    await accounts.createUser('Ada', soon());
    await accounts.createUser('Ren\u00e9', soon());
    await expect(accounts.createUser('Rene\u0301', soon())).rejects.toThrow(ConflictError);
    await accounts.createToken({ userName: 'Rene\u0301', name: '', lifetimeMs: null }, soon());
  });

  it('refuses names that are empty, padded, too long, or hold control characters', async () => {
    const { accounts, database } = fixture;
    for (const name of ['', ' ', ' ada', 'ada ', 'a\u0000b', 'a\nb', 'a\u001b[2J', '\ud800', 'x'.repeat(101)]) {
      await expect(accounts.createUser(name, soon())).rejects.toThrow(ValidationError);
      await expect(accounts.createUser(name, soon())).rejects.toMatchObject({ field: 'name' });
      await expect(accounts.createToken({ userName: name, name: '', lifetimeMs: null }, soon())).rejects.toMatchObject({
        field: 'user',
      });
    }
    expect((await database.sql('SELECT id FROM users')).rows).toEqual([]);
  });

  it('counts code points in a name', async () => {
    const { accounts } = fixture;
    expect(await accounts.createUser('😀'.repeat(100), soon())).toMatchObject({ name: '😀'.repeat(100) });
  });

  it('stores nothing of a token but its hash', async () => {
    const { userToken, database } = fixture;
    const { token, id } = await userToken('ada');
    const { rows } = await database.sql('SELECT * FROM access_tokens');
    expect(rows).toEqual([
      {
        id,
        user_id: expect.any(String),
        name: '',
        token_hash: hashToken(token),
        created_at: '2026-01-31T09:00:00.000Z',
        last_used_at: null,
        expires_at: null,
        revoked_at: null,
      },
    ]);
    expect(JSON.stringify(rows)).not.toContain(token.slice('clu_'.length));
  });

  it('has no token for a user who does not exist', async () => {
    const { accounts, database } = fixture;
    await expect(accounts.createToken({ userName: 'eve', name: '', lifetimeMs: null }, soon())).rejects.toThrow(
      new NotFoundError('there is no user named "eve"'),
    );
    expect((await database.sql('SELECT id FROM access_tokens')).rows).toEqual([]);
  });

  it('lists tokens oldest first, with what became of them', async () => {
    const { accounts, clock, userToken } = fixture;
    const first = await userToken('ada', 3_600_000);
    clock.advance(1);
    const second = await userToken('bob');
    clock.advance(1);
    await accounts.revokeToken(second.id, soon());
    expect(await accounts.listTokens(soon())).toEqual([
      {
        id: first.id,
        userId: expect.any(String),
        userName: 'ada',
        name: '',
        createdAt: '2026-01-31T09:00:00.000Z',
        lastUsedAt: null,
        expiresAt: '2026-01-31T10:00:00.000Z',
        revokedAt: null,
      },
      {
        id: second.id,
        userId: expect.any(String),
        userName: 'bob',
        name: '',
        createdAt: '2026-01-31T09:00:00.001Z',
        lastUsedAt: null,
        expiresAt: null,
        revokedAt: '2026-01-31T09:00:00.002Z',
      },
    ]);
  });

  it('revokes once: the first time stays', async () => {
    const { accounts, clock, userToken } = fixture;
    const { id } = await userToken('ada');
    expect(await accounts.revokeToken(id, soon())).toBe('2026-01-31T09:00:00.000Z');
    clock.advance(1_000);
    expect(await accounts.revokeToken(id, soon())).toBe('2026-01-31T09:00:00.000Z');
  });

  it('has nothing to revoke under an id that no token has', async () => {
    for (const id of ['missing', '', 'a\u0000b', 'x'.repeat(10_000)]) {
      await expect(fixture.accounts.revokeToken(id, soon())).rejects.toThrow(NotFoundError);
    }
  });
});
