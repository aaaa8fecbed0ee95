import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { Caller } from '../../src/identity/caller.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import { CallerLifetime } from '../../src/identity/caller-lifetime.js';
import { AccessTokensRepository } from '../../src/identity/persistence/access-tokens.repository.js';
import { SystemClock } from '../../src/common/clock.js';
import { describeEachEngine } from '../support/engines.js';
import { identityFixture, soon } from './identity-fixture.js';
import type { IdentityFixture } from './identity-fixture.js';

/** Resolves when the caller's token has ended. */
function ended(lifetime: CallerLifetime, caller: Caller): Promise<void> {
  return new Promise((resolve) => void lifetime.watch(caller, resolve));
}

/** Counts the statements that the watching costs, and lets a test wait for the next one to end. */
class CountingTokens extends AccessTokensRepository {
  checks = 0;
  isBroken = false;
  private readonly waiting: { from: number; resolve: () => void }[] = [];

  override async findStanding(...args: Parameters<AccessTokensRepository['findStanding']>) {
    try {
      if (this.isBroken) throw new Error('no connection');
      return await super.findStanding(...args);
    } finally {
      this.checks += 1;
      for (const { from, resolve } of this.waiting) if (this.checks > from) resolve();
    }
  }

  /** A check that began after this call has ended. */
  async nextCheck(): Promise<void> {
    await new Promise<void>((resolve) => this.waiting.push({ from: this.checks + 1, resolve }));
  }
}

describeEachEngine('MCP-REVOKED: how long a caller may hold something open', (engine) => {
  let fixture: IdentityFixture;
  let tokens: CountingTokens;
  let lifetime: CallerLifetime;

  beforeEach(async () => {
    fixture = await identityFixture(engine);
    tokens = new CountingTokens(fixture.database.reader);
    lifetime = new CallerLifetime(tokens, fixture.clock, fixture.log, 20);
  });

  afterEach(async () => {
    await lifetime.beforeApplicationShutdown();
    await fixture.close();
  });

  const callerOf = (token: string) => fixture.enforced.authenticate(`Bearer ${token}`, soon());

  it('ends when the token is revoked, and only what that token holds', async () => {
    const first = await fixture.userToken('ada');
    const second = await fixture.accounts.createToken({ userName: 'ada', name: '', lifetimeMs: null }, soon());
    const other = jest.fn();
    lifetime.watch(await callerOf(second.token), other);
    const end = Promise.all([
      ended(lifetime, await callerOf(first.token)),
      ended(lifetime, await callerOf(first.token)),
    ]);
    await fixture.accounts.revokeToken(first.id, soon());
    await end;
    await tokens.nextCheck();
    expect(other).not.toHaveBeenCalled();
  });

  it("ends when the session's agent gets another token, and the new one holds", async () => {
    const old = await fixture.agentToken('session-1');
    const end = ended(lifetime, await callerOf(old));
    const renewed = await callerOf(await fixture.agentToken('session-1'));
    const held = jest.fn();
    lifetime.watch(renewed, held);
    await end;
    await tokens.nextCheck();
    expect(held).not.toHaveBeenCalled();
  });

  it('ends when the user or the session is gone', async () => {
    const user = ended(lifetime, await callerOf((await fixture.userToken('ada')).token));
    const agent = ended(lifetime, await callerOf(await fixture.agentToken('session-1')));
    await fixture.database.sql('DELETE FROM users');
    await fixture.database.sql('DELETE FROM tasks');
    await Promise.all([user, agent]);
  });

  it('ends at the expiry, without asking the database', async () => {
    const exact = new CallerLifetime(tokens, new SystemClock(), fixture.log, 3_600_000);
    const caller: Caller = {
      kind: 'user',
      userId: 'u',
      userName: 'ada',
      tokenId: 't',
      expiresAt: new Date(Date.now() + 50).toISOString(),
    };
    await ended(exact, caller);
    expect(new Date().toISOString() >= (caller.expiresAt ?? '')).toBe(true);
    expect(tokens.checks).toBe(0);
    await exact.beforeApplicationShutdown();
  });

  it('ends at once, but not before watching has returned, when the token has expired already', async () => {
    const { token } = await fixture.userToken('ada', 60_000);
    const caller = await callerOf(token);
    fixture.clock.advance(60_000);
    let hasReturned = false;
    const end = new Promise<boolean>((resolve) => void lifetime.watch(caller, () => resolve(hasReturned)));
    hasReturned = true;
    expect(await end).toBe(true);
  });

  it('ends when the expiry is brought forward in the database', async () => {
    const { token } = await fixture.userToken('ada', 3_600_000);
    const end = ended(lifetime, await callerOf(token));
    await fixture.database.sql('UPDATE access_tokens SET expires_at = $1', [fixture.clock.now()]);
    await end;
  });

  it('never ends for an unscoped caller (A4), who costs nothing', async () => {
    const listener = jest.fn();
    lifetime.watch(UNSCOPED, listener);
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(listener).not.toHaveBeenCalled();
    expect(tokens.checks).toBe(0);
  });

  it('tells each watcher once, and none that has stopped watching', async () => {
    const { id, token } = await fixture.userToken('ada');
    const caller = await callerOf(token);
    const stopped = jest.fn();
    const told = jest.fn();
    const stop = lifetime.watch(caller, stopped);
    lifetime.watch(caller, told);
    lifetime.watch(caller, told);
    stop();
    stop();
    lifetime.watch(caller, () => stopLater());
    const stopLater = lifetime.watch(caller, stopped);
    const end = ended(lifetime, caller);
    await fixture.accounts.revokeToken(id, soon());
    await end;
    expect(stopped).not.toHaveBeenCalled();
    expect(told).toHaveBeenCalledTimes(2);
  });

  it('asks one statement a period for all of them, and none when nobody is left', async () => {
    const callers = await Promise.all(
      ['ada', 'bob', 'eve'].map(async (name) => callerOf((await fixture.userToken(name)).token)),
    );
    const slow = new CallerLifetime(tokens, fixture.clock, fixture.log, 100);
    const stops = callers.flatMap((caller) => Array.from({ length: 100 }, () => slow.watch(caller, () => undefined)));
    expect(tokens.checks).toBe(0);
    const startedAt = performance.now();
    await tokens.nextCheck();
    await tokens.nextCheck();
    expect(tokens.checks).toBeLessThanOrEqual(Math.floor((performance.now() - startedAt) / 100));
    for (const stop of stops) stop();
    const before = tokens.checks;
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(tokens.checks).toBe(before);
    await slow.beforeApplicationShutdown();
  });

  it('outlives a database that is away, and a listener that throws', async () => {
    const { id, token } = await fixture.userToken('ada');
    const caller = await callerOf(token);
    lifetime.watch(caller, () => {
      throw new Error('listener');
    });
    const end = ended(lifetime, caller);
    tokens.isBroken = true;
    await fixture.accounts.revokeToken(id, soon());
    await tokens.nextCheck();
    expect(fixture.logged).toContain('token.check_failed');
    tokens.isBroken = false;
    await end;
    expect(fixture.logged.filter((event) => event === 'token.end_listener_failed')).toHaveLength(1);
  });

  it('watches nobody any more once the application shuts down', async () => {
    const { id, token } = await fixture.userToken('ada');
    const caller = await callerOf(token);
    const listener = jest.fn();
    lifetime.watch(caller, listener);
    await lifetime.beforeApplicationShutdown();
    await fixture.accounts.revokeToken(id, soon());
    lifetime.watch(caller, listener);
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(listener).not.toHaveBeenCalled();
    expect(tokens.checks).toBe(0);
  });
});
