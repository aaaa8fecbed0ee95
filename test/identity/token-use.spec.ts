import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { UnitOfWork } from '../../src/persistence/unit-of-work.js';
import { TokenUse } from '../../src/identity/token-use.js';
import { describeEachEngine } from '../support/engines.js';
import { identityFixture, soon } from './identity-fixture.js';
import type { IdentityFixture } from './identity-fixture.js';

/** Counts what is written, and can be told to fail. */
class Recorder extends UnitOfWork {
  readonly dialect;
  runs = 0;
  isBroken = false;

  constructor(private readonly inner: UnitOfWork) {
    super();
    this.dialect = inner.dialect;
  }

  override async run<T>(...args: Parameters<typeof this.inner.run<T>>): Promise<T> {
    this.runs += 1;
    if (this.isBroken) throw new Error('the disk is full');
    return this.inner.run(...args);
  }
}

async function lastUse({ database }: IdentityFixture): Promise<unknown> {
  return (await database.sql('SELECT last_used_at FROM access_tokens ORDER BY created_at, id')).rows.map(
    (row) => row['last_used_at'],
  );
}

describeEachEngine('the last use of a token', (engine) => {
  let fixture: IdentityFixture;

  beforeEach(async () => {
    fixture = await identityFixture(engine);
  });

  afterEach(() => fixture.close());

  it('is kept behind the request, with a resolution of a minute', async () => {
    const { token } = await fixture.userToken('ada');
    const authenticate = async () => {
      await fixture.enforced.authenticate(`Bearer ${token}`, soon());
      await fixture.use.flush();
    };
    await authenticate();
    expect(await lastUse(fixture)).toEqual(['2026-01-31T09:00:00.000Z']);
    fixture.clock.advance(59_999);
    await authenticate();
    expect(await lastUse(fixture)).toEqual(['2026-01-31T09:00:00.000Z']);
    fixture.clock.advance(1);
    await authenticate();
    expect(await lastUse(fixture)).toEqual(['2026-01-31T09:01:00.000Z']);
  });

  it('is written without anybody asking for it', async () => {
    const { token } = await fixture.userToken('ada');
    await fixture.enforced.authenticate(`Bearer ${token}`, soon());
    const end = performance.now() + 10_000;
    while (((await lastUse(fixture)) as unknown[])[0] === null && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await lastUse(fixture)).toEqual(['2026-01-31T09:00:00.000Z']);
  });

  it('shares one write among all tokens seen together, and writes none twice', async () => {
    const recorder = new Recorder(fixture.database.unitOfWork);
    const use = new TokenUse(recorder, fixture.tokens, fixture.clock, fixture.log);
    const ids = [(await fixture.userToken('ada')).id, (await fixture.userToken('bob')).id];
    for (let request = 0; request < 50; request += 1) {
      for (const id of ids) use.seen({ id, lastUsedAt: null });
    }
    await use.flush();
    expect(recorder.runs).toBe(1);
    for (const id of ids) use.seen({ id, lastUsedAt: null });
    await use.flush();
    expect(recorder.runs).toBe(1);
    expect(await lastUse(fixture)).toEqual(['2026-01-31T09:00:00.000Z', '2026-01-31T09:00:00.000Z']);
  });

  it('that cannot be written fails nobody, and is not tried again by every request', async () => {
    const recorder = new Recorder(fixture.database.unitOfWork);
    const use = new TokenUse(recorder, fixture.tokens, fixture.clock, fixture.log);
    const { id } = await fixture.userToken('ada');
    recorder.isBroken = true;
    use.seen({ id, lastUsedAt: null });
    await use.flush();
    expect(fixture.logged).toEqual(['token.use_not_recorded']);
    recorder.isBroken = false;
    use.seen({ id, lastUsedAt: null });
    await use.flush();
    expect(recorder.runs).toBe(1);
    fixture.clock.advance(60_000);
    use.seen({ id, lastUsedAt: null });
    await use.flush();
    expect(await lastUse(fixture)).toEqual(['2026-01-31T09:01:00.000Z']);
  });

  it('never goes back behind what another process has written', async () => {
    const { id } = await fixture.userToken('ada');
    await fixture.database.sql('UPDATE access_tokens SET last_used_at = $1', ['2026-01-31T09:00:30.000Z']);
    fixture.use.seen({ id, lastUsedAt: null });
    await fixture.use.flush();
    expect(await lastUse(fixture)).toEqual(['2026-01-31T09:00:30.000Z']);
  });

  it('is written before the application has shut down, and not after', async () => {
    const { id } = await fixture.userToken('ada');
    fixture.use.seen({ id, lastUsedAt: null });
    await fixture.use.beforeApplicationShutdown();
    expect(await lastUse(fixture)).toEqual(['2026-01-31T09:00:00.000Z']);
    fixture.clock.advance(60_000);
    fixture.use.seen({ id, lastUsedAt: '2026-01-31T09:00:00.000Z' });
    await fixture.use.flush();
    expect(await lastUse(fixture)).toEqual(['2026-01-31T09:00:00.000Z']);
  });
});
