import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Answerer, REJECTION } from '../../bench/lib/answers.js';
import { BareServer, POOL_SIZE, recordPlan } from '../../bench/lib/bare-server.js';
import { killAll } from '../../bench/lib/children.js';
import type { Plan } from '../../bench/lib/recording.js';
import { sqliteDatabases } from '../../bench/lib/seeded-databases.js';
import { Site, type BenchContext } from '../../bench/lib/site.js';
import { SIZES } from '../../bench/lib/sizes.js';

const folder = mkdtempSync(join(tmpdir(), 'clarion-bench-'));

beforeAll(() => {
  expect(spawnSync(process.execPath, [join('scripts', 'build-when-needed.js')]).status).toBe(0);
}, 300_000);

afterAll(async () => {
  await killAll();
  rmSync(folder, { recursive: true, force: true });
});

describe('the bare server beside the product', () => {
  it('sends what the product was recorded to send, and a bench whose bare server sends anything else ends', async () => {
    const context: BenchContext = {
      engine: 'sqlite',
      databases: sqliteDatabases(folder, folder),
      sizes: SIZES.smoke,
      random: () => 0.5,
      runFolder: folder,
      nodeArgs: [],
      say: () => undefined,
    };
    const site = await Site.open(context, 'product', SIZES.smoke.small);
    const plan = await recordPlan(site, REJECTION);
    const settings = await site.server.settings();
    expect(settings).toMatchObject({
      writer: { synchronous: 2, journal_mode: 'wal' },
      reader: { journal_mode: 'wal' },
    });
    // The rows are the product's, and it has left them.
    await site.server.stop();
    const bundles = await site.stock.bundles(REJECTION.stock, 4);

    const answerOn = async (plans: Plan, bundle: (typeof bundles)[number]): Promise<void> => {
      const bare = await BareServer.start(context, {
        engine: 'sqlite',
        databaseUrl: site.databaseUrl,
        poolSize: POOL_SIZE,
        settings,
        plans: { [REJECTION.name]: { ...plan, ...plans } },
      });
      await bare.expect(REJECTION, bundles);
      const answerer = new Answerer(bare.server, REJECTION);
      try {
        await bare.assertSame(plan, answerer, bundle);
      } finally {
        answerer.close();
        await bare.server.kill();
      }
    };
    const [first, second, third, fourth] = bundles;
    await answerOn(plan, first!);
    expect(await site.stock.statusOf(first!)).toEqual({ status: 'rejected', isSettled: true });

    const altered = plan.statements.map((sent) => ({ ...sent, text: sent.text.replace('UPDATE ', 'UPDATE  ') }));
    await expect(answerOn({ statements: altered }, second!)).rejects.toThrow('does not send what the product sends');
    const without = plan.statements.filter(({ text }) => !text.includes('access_tokens'));
    await expect(answerOn({ statements: without }, third!)).rejects.toThrow('does not send what the product sends');
    const uncommitted = plan.statements.filter(({ text }) => !/^\s*(BEGIN|COMMIT)\b/.test(text));
    await expect(answerOn({ statements: uncommitted }, fourth!)).rejects.toThrow(
      'does not send what the product sends',
    );
    await site.close();
  }, 300_000);
});
