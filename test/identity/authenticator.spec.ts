import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { TemporarilyUnavailableError, UnauthorizedError } from '../../src/common/domain-error.js';
import { agentTokenId, hashToken, issueToken } from '../../src/identity/tokens.js';
import { describeEachEngine } from '../support/engines.js';
import { identityFixture, soon } from './identity-fixture.js';
import type { IdentityFixture } from './identity-fixture.js';

const REFUSAL = 'a valid access token is required, sent as "Authorization: Bearer TOKEN"';

describeEachEngine('AUTH: authentication', (engine) => {
  let fixture: IdentityFixture;

  beforeEach(async () => {
    fixture = await identityFixture(engine);
  });

  afterEach(() => fixture.close());

  it('takes a user token for its user', async () => {
    const { enforced, disabled, userToken } = fixture;
    const { id, token } = await userToken('ada');
    const caller = await enforced.authenticate(`Bearer ${token}`, soon());
    expect(caller).toEqual({ kind: 'user', userId: expect.any(String), userName: 'ada', tokenId: id });
    expect(await disabled.authenticate(`bearer   ${token}`, soon())).toEqual(caller);
  });

  it('takes an agent token for the agent of its session', async () => {
    const { enforced, disabled, agentToken } = fixture;
    const token = await agentToken('session-1');
    const caller = { kind: 'agent', sessionId: 'session-1', tokenId: agentTokenId(hashToken(token)) };
    expect(await enforced.authenticate(`Bearer ${token}`, soon())).toEqual(caller);
    expect(await disabled.authenticate(`Bearer ${token}`, soon())).toEqual(caller);
  });

  it('without a token is unscoped while authentication is off (A4), and refused when it is enforced', async () => {
    const { enforced, disabled } = fixture;
    expect(await disabled.authenticate(undefined, soon())).toEqual({ kind: 'unscoped' });
    await expect(enforced.authenticate(undefined, soon())).rejects.toThrow(new UnauthorizedError(REFUSAL));
  });

  describe.each(['enforced', 'disabled'] as const)('refuses alike while authentication is %s', (mode) => {
    it('whatever is no token, or none that exists', async () => {
      for (const header of [
        '',
        'Bearer',
        'Bearer ',
        'Basic dXNlcjpwYXNz',
        'Bearer nonsense',
        'Bearer a b',
        `Bearer ${issueToken('user').token}`,
        `Bearer ${issueToken('agent').token}`,
        issueToken('user').token,
        'Bearer clu_\u0000',
        `Bearer ${'x'.repeat(100_000)}`,
      ]) {
        await expect(fixture[mode].authenticate(header, soon())).rejects.toThrow(new UnauthorizedError(REFUSAL));
      }
    });

    it('a token with anything before or after it', async () => {
      const { token } = await fixture.userToken('ada');
      for (const header of [
        `Bearer ${token},`,
        `Bearer ${token}, Bearer ${token}`,
        `XBearer ${token}`,
        `Bearer "${token}"`,
      ]) {
        await expect(fixture[mode].authenticate(header, soon())).rejects.toThrow(new UnauthorizedError(REFUSAL));
      }
    });

    it('one that was revoked, and no other of the same user', async () => {
      const first = await fixture.userToken('ada');
      const second = await fixture.accounts.createToken({ userName: 'ada', name: '', lifetimeMs: null }, soon());
      await fixture.accounts.revokeToken(first.id, soon());
      await expect(fixture[mode].authenticate(`Bearer ${first.token}`, soon())).rejects.toThrow(
        new UnauthorizedError(REFUSAL),
      );
      expect(await fixture[mode].authenticate(`Bearer ${second.token}`, soon())).toMatchObject({ tokenId: second.id });
    });

    it('one that has expired, from that very millisecond on', async () => {
      const { token, expiresAt } = await fixture.userToken('ada', 60_000);
      fixture.clock.advance(59_999);
      expect(await fixture[mode].authenticate(`Bearer ${token}`, soon())).toMatchObject({ expiresAt });
      fixture.clock.advance(1);
      await expect(fixture[mode].authenticate(`Bearer ${token}`, soon())).rejects.toThrow(
        new UnauthorizedError(REFUSAL),
      );
    });

    it("a session's agent token once another was made for it", async () => {
      const old = await fixture.agentToken('session-1');
      const renewed = await fixture.agentToken('session-1');
      await expect(fixture[mode].authenticate(`Bearer ${old}`, soon())).rejects.toThrow(new UnauthorizedError(REFUSAL));
      expect(await fixture[mode].authenticate(`Bearer ${renewed}`, soon())).toMatchObject({ sessionId: 'session-1' });
    });
  });

  it('never takes a token for one of the other kind, even where its hash is stored', async () => {
    const { database, enforced, agentToken } = fixture;
    await agentToken('session-1');
    const { token, hash } = issueToken('user');
    await database.sql('UPDATE task_sessions SET agent_token_hash = $1', [hash]);
    await expect(enforced.authenticate(`Bearer ${token}`, soon())).rejects.toThrow(UnauthorizedError);
  });

  it('is unavailable, and not unauthorised, when the database does not answer in time', async () => {
    const { enforced, userToken } = fixture;
    const { token } = await userToken('ada');
    await expect(enforced.authenticate(`Bearer ${token}`, Deadline.after(0))).rejects.toThrow(
      TemporarilyUnavailableError,
    );
  });
});
