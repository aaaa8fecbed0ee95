// node --expose-gc --import ./server-probe.js MAIN.js, with an IPC channel: tells the parent what the process costs, and
// is the only thing about a measured server that is not as shipped.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import process from 'node:process';
import { setImmediate as turn } from 'node:timers/promises';

const RESOLUTION_MS = 10;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
let cpu = process.cpuUsage();

/** Garbage may need a turn of the loop, and a second look, to be let go. */
async function heapAfterGc() {
  for (let round = 0; round < 3; round += 1) {
    globalThis.gc();
    await turn();
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heapBytes: heapUsed + external, rssBytes: rss };
}

/** The timer itself takes one resolution; what is above it is delay. */
const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);

const answers = {
  /** Begins a measurement: everything told later is since then. */
  async begin() {
    delay.disable();
    const memory = await heapAfterGc();
    delay.reset();
    delay.enable();
    cpu = process.cpuUsage();
    return memory;
  },
  /** In the middle of a measurement; the collection does not count as delay. */
  async memory() {
    delay.disable();
    const memory = await heapAfterGc();
    delay.enable();
    return memory;
  },
  /** Ends a measurement. */
  async end() {
    const { user, system } = process.cpuUsage(cpu);
    const loop = { p50Ms: ms(delay.percentile(50)), p99Ms: ms(delay.percentile(99)), maxMs: ms(delay.max) };
    delay.disable();
    return { ...(await heapAfterGc()), loop, cpuMs: (user + system) / 1000 };
  },
};

process.on('message', ({ id, ask }) => {
  void answers[ask]().then((answer) => process.send({ id, answer }));
});
process.on('disconnect', () => process.exit(1));
// A server that is told to stop must be able to end.
process.channel?.unref();
