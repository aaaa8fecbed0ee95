import { Injectable } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { Deadline } from '../common/deadline.js';
import { Metrics } from '../observability/metrics.js';
import { scrapedGauge } from '../observability/scraped-gauge.js';
import { Reader } from '../persistence/unit-of-work.js';
import { WaiterRegistry } from './delivery/waiter-registry.js';
import { countActiveBundles } from './persistence/count-active-bundles.query.js';

/** A scrape waits no longer, whatever the database does, and then goes without the number. */
const COUNT_MS = 1_000;

/** How many questions are open, and who waits for them. */
@Injectable()
export class BundleMetrics {
  constructor({ registry }: Metrics, waiters: WaiterRegistry, reader: Reader) {
    new Gauge({
      name: 'clarification_active_waiters',
      help: 'Calls blocked on a bundle now: of agents, who take its response over, and of observers, who look on.',
      labelNames: ['role'],
      registers: [registry],
      collect() {
        for (const [role, count] of Object.entries(waiters.countByRole())) this.set({ role }, count);
      },
    });
    scrapedGauge(registry, { name: 'clarification_active_bundles', help: 'Bundles that can be answered now.' }, () =>
      countActiveBundles(reader.within(Deadline.after(COUNT_MS))),
    );
  }
}
