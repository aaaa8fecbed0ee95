import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { ConfigModule } from '../../src/config/config.module.js';
import { loadEnv } from '../../src/config/env.js';
import { Accounts } from '../../src/identity/accounts.js';
import { AgentTokens } from '../../src/identity/agent-tokens.js';
import { Authenticator } from '../../src/identity/authenticator.js';
import { CallerLifetime } from '../../src/identity/caller-lifetime.js';
import { IdentityModule } from '../../src/identity/identity.module.js';
import { ObservabilityModule } from '../../src/observability/observability.module.js';
import { PersistenceModule } from '../../src/persistence/persistence.module.js';
import { describeEachEngine } from '../support/engines.js';
import { soon } from './identity-fixture.js';

function application(url: string, mode: 'disabled' | 'enforced') {
  const env = loadEnv({ DATABASE_URL: url, AUTH_MODE: mode, LOG_LEVEL: 'silent' });
  return Test.createTestingModule({
    imports: [ConfigModule.forRoot(env), ObservabilityModule, PersistenceModule.forRoot(), IdentityModule],
  }).compile();
}

describeEachEngine('the identity module', (engine) => {
  it('offers its services by the configured mode, and a shutdown records uses and ends watching (AUTH, A4)', async () => {
    const url = await engine.createUrl();
    const first = await (await application(url, 'enforced')).init();
    const accounts = first.get(Accounts);
    await accounts.createUser('ada', soon());
    const { token } = await accounts.createToken({ userName: 'ada', name: '', lifetimeMs: null }, soon());
    const authenticator = first.get(Authenticator);
    await expect(authenticator.authenticate(undefined, soon())).rejects.toMatchObject({ code: 'unauthorized' });
    const caller = await authenticator.authenticate(`Bearer ${token}`, soon());
    first.get(CallerLifetime).watch(caller, () => undefined);
    await first.close();

    const second = await (await application(url, 'disabled')).init();
    expect(await second.get(Authenticator).authenticate(undefined, soon())).toEqual({ kind: 'unscoped' });
    expect(await second.get(Accounts).listTokens(soon())).toMatchObject([{ lastUsedAt: expect.any(String) }]);
    expect(second.get(AgentTokens).issue().token).toMatch(/^cla_/);
    await second.close();
  });
});
