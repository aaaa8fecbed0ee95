import type { CrowdOutcome, Sizes } from './crowd.js';
import { CROWDS, type CrowdName } from './crowds.js';
import type { Memory } from './probed-server.js';
import { World, type User } from './world.js';

// One crowd, in a process of its own, so that neither its heap nor its event loop is measured with the server's.
// Started by load.ts, which sends what to do and answers what the server's memory is.

export interface Load {
  readonly crowd: CrowdName;
  readonly url: string;
  readonly users: readonly User[];
  readonly sizes: Sizes;
}

export type FromLoad = { readonly kind: 'memory' } | { readonly kind: 'outcome'; readonly outcome: CrowdOutcome };
export type ToLoad =
  { readonly kind: 'load'; readonly load: Load } | { readonly kind: 'memory'; readonly memory: Memory };

const asked: ((memory: Memory) => void)[] = [];

process.on('message', (message: ToLoad) => {
  if (message.kind === 'memory') asked.shift()?.(message.memory);
  else void run(message.load);
});

// It does not outlive whoever started it.
process.on('disconnect', () => process.exit(1));

async function run({ crowd, url, users, sizes }: Load): Promise<void> {
  const world = new World(url, users);
  const { did, faults, figures } = await CROWDS[crowd]({
    world,
    sizes,
    memory: () =>
      new Promise((told) => {
        asked.push(told);
        say({ kind: 'memory' });
      }),
  });
  const refused = { name: 'refused for now and sent again', value: world.refusedForNow, unit: '', target: 0 } as const;
  const outcome: CrowdOutcome = { did, faults, figures: [...figures, refused] };
  process.send?.({ kind: 'outcome', outcome } satisfies FromLoad, () => process.exit(0));
}

function say(message: FromLoad): void {
  process.send?.(message);
}
