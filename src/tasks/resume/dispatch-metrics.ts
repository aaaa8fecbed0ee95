import { Injectable } from '@nestjs/common';
import { Deadline } from '../../common/deadline.js';
import { Metrics } from '../../observability/metrics.js';
import { scrapedGauge } from '../../observability/scraped-gauge.js';
import { Reader } from '../../persistence/unit-of-work.js';
import { countOwedDispatches } from '../persistence/owed-dispatches.query.js';

const COUNT_MS = 1_000;

/** How many turns wait to be sent to a webhook; one that only grows says that agents are not to be reached. */
@Injectable()
export class DispatchMetrics {
  constructor({ registry }: Metrics, reader: Reader) {
    scrapedGauge(
      registry,
      { name: 'turn_dispatches_owed', help: "Turns that are still to be sent to their agent's webhook." },
      () => countOwedDispatches(reader.within(Deadline.after(COUNT_MS))),
    );
  }
}
