import { Injectable } from '@nestjs/common';
import { Gauge, Histogram } from 'prom-client';
import { Metrics } from '../observability/metrics.js';
import type { DatabaseUse, WaitBegins } from './database-waits.js';

const USES: readonly DatabaseUse[] = ['write', 'read'];
/** Seconds: from a free connection to what a hand-over may take. */
const BUCKETS = [0.001, 0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30];

/** How long work waits for the SQLite writer, its reader, or a connection of a PostgreSQL pool, and how much does. */
@Injectable()
export class DatabaseWaitMetrics {
  private readonly seconds: Histogram<'use'>;
  private readonly waiting: Gauge<'use'>;

  constructor({ registry }: Metrics) {
    this.seconds = new Histogram({
      name: 'database_wait_seconds',
      help: 'How long work waited for a database connection, before its first statement.',
      labelNames: ['use'],
      buckets: BUCKETS,
      registers: [registry],
    });
    this.waiting = new Gauge({
      name: 'database_waiting',
      help: 'Work that waits for a database connection now.',
      labelNames: ['use'],
      registers: [registry],
    });
    for (const use of USES) {
      this.seconds.zero({ use });
      this.waiting.set({ use }, 0);
    }
  }

  of(use: DatabaseUse): WaitBegins {
    return () => {
      const end = this.seconds.startTimer({ use });
      this.waiting.inc({ use });
      return () => {
        end();
        this.waiting.dec({ use });
      };
    };
  }
}
