import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Answerer, recordAnswer, type AnswerKind, type OpenWait } from './answers.js';
import type { BareBundle, BareInstructions, BarePlan } from './bare-plan.js';
import { BenchError } from './bench-error.js';
import { HttpClient } from './http-client.js';
import { ProbedProcess } from './probed-process.js';
import { differenceBetween, planOf, type Plan } from './recording.js';
import { beginWaits, type BenchContext, type Site } from './site.js';
import { idsOf, type Bundle } from './stock.js';

const LOADER = pathToFileURL(join(import.meta.dirname, '../../test/support/run-typescript.js')).href;
/** The product's default, which the bench leaves as it is. */
const POOL_SIZE = 10;

const RECORDINGS = 7;

/**
 * Records one kind of answer on the product until two in a row were the same: what runs once a minute may fall into one.
 * @throws BenchError when the product does not send the same twice
 */
export async function recordPlan(site: Site, kind: AnswerKind): Promise<BarePlan> {
  const answerer = new Answerer(site.server, kind);
  try {
    const bundles = await site.stock.bundles(kind.stock, RECORDINGS);
    const waits = await beginWaits(site, answerer, bundles);
    let last: Awaited<ReturnType<typeof recordAnswer>> | undefined;
    let plan: BarePlan | undefined;
    let fault: unknown;
    for (const [index, bundle] of bundles.entries()) {
      const recording = await recordAnswer(site.server, answerer, bundle, waits[index]);
      try {
        // The first answers of a process may do what later ones find done.
        if (index > 2 && last !== undefined) plan ??= { ...planOf(last, recording), ...repliesOf(recording) };
      } catch (error) {
        fault = error;
      }
      last = recording;
    }
    if (plan === undefined) throw fault;
    return plan;
  } finally {
    answerer.close();
  }
}

function repliesOf({ reply, waited }: Awaited<ReturnType<typeof recordAnswer>>): Pick<BarePlan, 'reply' | 'waited'> {
  return waited === undefined ? { reply } : { reply, waited };
}

/** A bare server that replays what the product was recorded to send, on a database of its own. */
export class BareServer {
  private constructor(readonly server: ProbedProcess) {}

  static async start(context: BenchContext, instructions: BareInstructions): Promise<BareServer> {
    const folder = join(context.runFolder, `${context.engine}-bare`);
    await mkdir(folder, { recursive: true });
    const file = join(folder, 'instructions.json');
    await writeFile(file, JSON.stringify(instructions));
    const server = await ProbedProcess.start('bench/children/bare-server.ts', {
      folder,
      args: [file],
      nodeArgs: ['--import', LOADER, ...context.nodeArgs],
    });
    return new BareServer(server);
  }

  /** Tells it of bundles before they are answered. */
  async expect(kind: AnswerKind, bundles: readonly Bundle[]): Promise<void> {
    const body: BareBundle[] = bundles.map((bundle) => ({
      pendingId: bundle.pendingId,
      ids: idsOf(bundle),
      kind: kind.name,
    }));
    const client = new HttpClient(this.server.url);
    await client.send('POST', '/bundles', body);
    client.close();
  }

  /**
   * Answers one bundle and looks at what it sends: the same texts in the same order on the same kind of connection, with
   * the same number of rows each, as the product was recorded to send.
   *
   * @throws BenchError naming the first difference
   */
  async assertSame(product: Plan, answerer: Answerer, bundle: Bundle, wait?: OpenWait): Promise<void> {
    const { statements } = await recordAnswer(this.server, answerer, bundle, wait);
    const difference = differenceBetween(product.statements, statements);
    if (difference !== undefined) {
      const { name } = answerer.kind;
      throw new BenchError(`the bare server does not send what the product sends for a ${name}: ${difference}`);
    }
  }
}

export { POOL_SIZE };
