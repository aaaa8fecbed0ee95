/** One of two things that are measured against each other. */
export interface Side {
  /** Makes one request and returns how long it took, in milliseconds; throws when the reply is wrong. */
  readonly sample: (index: number) => Promise<number>;
  /** Processor time that its server has used so far, in milliseconds. */
  readonly cpu?: () => Promise<number>;
}

export interface Measured {
  /** Milliseconds, in the order in which they were taken. */
  readonly samples: readonly number[];
  /** Processor milliseconds of the server for each sample. */
  readonly cpu?: number;
}

/**
 * Samples of two sides in pairs, in random order within each pair, so that whatever else the machine does falls on both
 * alike. The first `warmUp` pairs do not count.
 */
export async function compare(
  a: Side,
  b: Side,
  options: { readonly samples: number; readonly warmUp: number; readonly random: () => number },
): Promise<[Measured, Measured]> {
  const takenA: number[] = [];
  const takenB: number[] = [];
  let index = 0;
  const pair = async (): Promise<[number, number]> => {
    const own = index;
    index += 1;
    if (options.random() < 0.5) {
      const first = await a.sample(own);
      return [first, await b.sample(own)];
    }
    const second = await b.sample(own);
    return [await a.sample(own), second];
  };
  for (let count = 0; count < options.warmUp; count += 1) await pair();
  const before = await Promise.all([a.cpu?.(), b.cpu?.()]);
  for (let count = 0; count < options.samples; count += 1) {
    const [ofA, ofB] = await pair();
    takenA.push(ofA);
    takenB.push(ofB);
  }
  const after = await Promise.all([a.cpu?.(), b.cpu?.()]);
  return [measured(takenA, before[0], after[0]), measured(takenB, before[1], after[1])];
}

function measured(samples: readonly number[], before: number | undefined, after: number | undefined): Measured {
  return before === undefined || after === undefined
    ? { samples }
    : { samples, cpu: (after - before) / samples.length };
}
