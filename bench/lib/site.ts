import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Answerer, waitersOf, type AnswerKind, type OpenWait } from './answers.js';
import type { Side } from './compare.js';
import type { Engine } from '../../src/persistence/dialect.js';
import type { ProbedProcess } from './probed-process.js';
import { startProduct } from './product-server.js';
import type { SeededDatabases } from './seeded-databases.js';
import type { Sizes, TableSize } from './sizes.js';
import { Stock, until, type Bundle } from './stock.js';

/** What every measurement is given. */
export interface BenchContext {
  readonly engine: Engine;
  readonly databases: SeededDatabases;
  readonly sizes: Sizes;
  readonly random: () => number;
  readonly runFolder: string;
  /** For the servers that are measured, e.g. `--cpu-prof`. */
  readonly nodeArgs: readonly string[];
  /** Tells whoever watches what is going on. */
  readonly say: (line: string) => void;
}

/** The product on a copy of a seeded database. */
export class Site {
  private constructor(
    private readonly databases: SeededDatabases,
    readonly databaseUrl: string,
    readonly server: ProbedProcess,
    readonly stock: Stock,
  ) {}

  static async open(context: BenchContext, name: string, size: TableSize): Promise<Site> {
    if (!(await context.databases.has(size))) {
      context.say(`filling a database with ${size.messages.toLocaleString('en')} messages`);
    }
    const databaseUrl = await context.databases.copy(name, size);
    const folder = join(context.runFolder, `${context.engine}-${name}`);
    await mkdir(folder, { recursive: true });
    const server = await startProduct({ folder, databaseUrl, nodeArgs: context.nodeArgs });
    return new Site(context.databases, databaseUrl, server, await Stock.open(databaseUrl, server));
  }

  /** A statement beside the server. */
  run(sql: string): Promise<void> {
    return this.databases.run(this.databaseUrl, sql);
  }

  async close(): Promise<void> {
    await this.stock.close();
    await this.server.stop();
    await this.databases.remove(this.databaseUrl);
  }
}

/** The two that most rows compare. */
export interface Sites {
  readonly large: Site;
  readonly small: Site;
}

const SETTLE_MS = 200;

/** Answers of one kind on a site, each to a bundle of its own that was made beforehand. */
export class AnswerSide implements Side {
  private constructor(
    private readonly answerer: Answerer,
    private readonly bundles: readonly Bundle[],
    private readonly waits: readonly (OpenWait | undefined)[],
    private readonly server: ProbedProcess,
  ) {}

  static async on(site: Site, kind: AnswerKind, count: number): Promise<AnswerSide> {
    const bundles = await site.stock.bundles(kind.stock, count);
    const answerer = new Answerer(site.server, kind);
    const waits = await beginWaits(site, answerer, bundles);
    return new AnswerSide(answerer, bundles, waits, site.server);
  }

  readonly sample = (index: number): Promise<number> => {
    const bundle = this.bundles[index];
    if (bundle === undefined) throw new Error('fewer bundles were made than are answered');
    return this.answerer.answer(bundle, this.waits[index]);
  };

  readonly cpu = (): Promise<number> => this.server.cpu();

  close(): void {
    this.answerer.close();
  }
}

/** Resolves when the server knows of all of them and has nothing left to do for them. */
export async function beginWaits(
  site: Site,
  answerer: Answerer,
  bundles: readonly Bundle[],
): Promise<readonly (OpenWait | undefined)[]> {
  if (!answerer.kind.isWaitedFor) return bundles.map(() => undefined);
  const before = await waitersOf(site.server.url);
  const waits = await answerer.beginWaits(bundles);
  await until('all agents wait', async () => (await waitersOf(site.server.url)) === before + bundles.length);
  await pause(SETTLE_MS);
  return waits;
}
