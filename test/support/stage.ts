import type { Deadline } from '../../src/common/deadline.js';
import type { Dialect } from '../../src/persistence/dialect.js';
import { UnitOfWork, type Tx } from '../../src/persistence/unit-of-work.js';

/**
 * Where a transaction stops: before it begins; inside it, once the first statement that matches has returned or all its
 * work is done; or when it has committed, or failed, and its caller has not heard yet.
 */
export type Step = 'begin' | RegExp | 'commit' | 'committed' | 'failed';
type Act = () => void | Promise<void>;

/** A transaction that waits on the stage. */
export interface Held {
  /** Resolves when it has come to the step. */
  readonly reached: Promise<void>;
  readonly release: () => void;
}

interface Cue {
  readonly name: string;
  readonly steps: readonly (readonly [Step, Act])[];
}

/**
 * Places transactions by hand: `servicesOn(database, { wrap: stage.wrap })`. Each cue is for the next transaction of
 * its name only, in the order in which the cues were given.
 */
export class Stage {
  private readonly cues: Cue[] = [];
  /** Every transaction that has begun, by name. */
  readonly begun: string[] = [];

  readonly wrap = (inner: UnitOfWork): UnitOfWork => new StagedUnitOfWork(inner, this);

  /** @param more what the same transaction does at further steps */
  hold(name: string, step: Step, ...more: [Step, Act][]): Held {
    let arrived: () => void = () => undefined;
    let release: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => (arrived = resolve));
    const released = new Promise<void>((resolve) => (release = resolve));
    const act = (): Promise<void> => {
      arrived();
      return released;
    };
    this.do(name, [step, act], ...more);
    return { reached, release };
  }

  /** Fails at the step: `committed` with everything in the rows, any other with nothing. */
  fail(name: string, step: Step, error: Error): void {
    this.do(name, [step, failWith(error)]);
  }

  /** Acts at each of the steps of one transaction. */
  do(name: string, ...steps: [Step, Act][]): void {
    this.cues.push({ name, steps });
  }

  /** @internal */
  take(name: string): Cue | undefined {
    this.begun.push(name);
    const index = this.cues.findIndex((cue) => cue.name === name);
    return index === -1 ? undefined : this.cues.splice(index, 1)[0];
  }
}

export function failWith(error: Error): Act {
  return () => {
    throw error;
  };
}

class StagedUnitOfWork extends UnitOfWork {
  readonly dialect: Dialect;

  constructor(
    private readonly inner: UnitOfWork,
    private readonly stage: Stage,
  ) {
    super();
    this.dialect = inner.dialect;
  }

  override async run<T>(name: string, deadline: Deadline, work: (tx: Tx) => Promise<T>): Promise<T> {
    const cue = this.stage.take(name);
    if (cue === undefined) return this.inner.run(name, deadline, work);
    const left = new Set(cue.steps);
    const at = async (isHere: (step: Step) => boolean): Promise<void> => {
      for (const entry of [...left].filter(([step]) => isHere(step))) {
        left.delete(entry);
        await entry[1]();
      }
    };
    await at((step) => step === 'begin');
    let value: T;
    try {
      value = await this.inner.run(name, deadline, async (tx) => {
        const done = await work({
          dialect: tx.dialect,
          deadline: tx.deadline,
          query: async (sql, params) => {
            const result = await tx.query<never>(sql, params);
            await at((step) => step instanceof RegExp && step.test(sql));
            return result;
          },
        });
        await at((step) => step === 'commit');
        return done;
      });
    } catch (error) {
      await at((step) => step === 'failed');
      throw error;
    }
    await at((step) => step === 'committed');
    return value;
  }
}
