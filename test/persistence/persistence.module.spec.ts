import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Deadline } from '../../src/common/deadline.js';
import { StartupError } from '../../src/common/startup-error.js';
import { ConfigModule } from '../../src/config/config.module.js';
import { loadEnv } from '../../src/config/env.js';
import { ObservabilityModule } from '../../src/observability/observability.module.js';
import { PersistenceModule } from '../../src/persistence/persistence.module.js';
import { Reader, UnitOfWork } from '../../src/persistence/unit-of-work.js';
import { describeEachEngine } from '../support/engines.js';

const soon = () => Deadline.after(5000);

function application(url: string) {
  const env = loadEnv({ DATABASE_URL: url, POOL_SIZE: '2' });
  return Test.createTestingModule({
    imports: [ConfigModule.forRoot(env), ObservabilityModule, PersistenceModule.forRoot()],
  });
}

describeEachEngine('the persistence module', (engine) => {
  it('LOCK: locks, migrates and gives a unit of work and a reader, and frees all on shutdown', async () => {
    const url = await engine.createUrl({ migrated: false });
    const first = await application(url).compile();
    await first.init();
    const at = '2026-01-31T09:00:00.000Z';
    await first
      .get(UnitOfWork)
      .run('test', soon(), (tx) => tx.query('INSERT INTO users (id, name, created_at) VALUES ($1, $1, $2)', ['u', at]));

    await expect(application(url).compile()).rejects.toThrow(StartupError);

    await first.close();
    await expect(first.get(Reader).query(soon(), 'SELECT 1')).rejects.toMatchObject({
      code: 'temporarily_unavailable',
    });

    const second = await application(url).compile();
    const { rows } = await second.get(Reader).query(soon(), 'SELECT id, created_at FROM users');
    expect(rows).toEqual([{ id: 'u', created_at: at }]);
    await second.close();
  });
});
