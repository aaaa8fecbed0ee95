import type { CrowdContext, CrowdOutcome } from './crowd.js';
import { Faults } from './faults.js';
import { median, quantile } from './figures.js';
import { atRate } from './stream-crowd.js';
import type { Session } from './world.js';

const MAX_SLOWDOWN = 1.5;

/** Questions arrive at a fixed rate, whether those before have been dealt with or not, and stay open. */
export async function manyAsks({ world, sizes }: CrowdContext): Promise<CrowdOutcome> {
  const faults = new Faults();
  const sessions = await world.sessionsOf(sizes.sessions);
  const count = sizes.asksPerSecond * sizes.askSeconds;
  const took: number[] = [];
  const asked = new Set<unknown>();
  const startedAt = performance.now();
  await atRate(count, sizes.asksPerSecond, async (index) => {
    const reply = await world.ask(sessions[index % sessions.length] as Session);
    took[index] = reply.ms;
    if (faults.expect(reply, 200, 'asking')) asked.add(reply.body['pending_id']);
  });
  const seconds = (performance.now() - startedAt) / 1000;
  if (asked.size !== count) faults.add(`${count} questions became ${asked.size} bundles`);
  await world.checkIsQuiet(faults);
  // Of questions that were asked when some, and when nearly all, of the history was there.
  const sixth = Math.floor(count / 6);
  const early = median(took.slice(sixth, 2 * sixth));
  const late = median(took.slice(-sixth));
  return {
    did: `${count} questions to ${sizes.sessions} sessions, ${Math.round(count / seconds)} a second for ${Math.round(seconds)} s`,
    faults: faults.list(),
    figures: [
      { name: 'question, median', value: median(took), unit: 'ms' },
      { name: 'question, p99', value: quantile(took, 0.99), unit: 'ms' },
      { name: 'last sixth / second sixth', value: late / early, unit: 'x', target: MAX_SLOWDOWN },
    ],
  };
}
