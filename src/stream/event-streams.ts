import type { ServerResponse } from 'node:http';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { TemporarilyUnavailableError } from '../common/domain-error.js';
import { CallerLifetime } from '../identity/caller-lifetime.js';
import type { Caller } from '../identity/caller.js';
import { Log } from '../observability/log.js';
import { Metrics } from '../observability/metrics.js';
import { EventFeed } from './event-feed.js';
import { EventStream } from './event-stream.js';
import { StreamSettings } from './stream-settings.js';

/**
 * The connections that are open: fed as events come, kept alive by one timer for all, ended with the token they were
 * opened with and with the server.
 */
@Injectable()
export class EventStreams implements OnModuleDestroy {
  private readonly open = new Set<EventStream>();
  private heartbeat: NodeJS.Timeout | undefined;
  private isStopping = false;

  constructor(
    private readonly feed: EventFeed,
    private readonly lifetime: CallerLifetime,
    private readonly settings: StreamSettings,
    private readonly log: Log,
    metrics: Metrics,
  ) {
    const { open } = this;
    new Gauge({
      name: 'sse_clients',
      help: 'Clients that read the stream of events now.',
      registers: [metrics.registry],
      collect() {
        this.set(open.size);
      },
    });
  }

  /**
   * Answers with the events that the caller may hear, from `lastEventId` on if it is not empty. Returns at once.
   * @throws TemporarilyUnavailableError while the server stops
   */
  begin(caller: Caller, lastEventId: string, response: ServerResponse): void {
    if (this.isStopping) throw new TemporarilyUnavailableError('the server is stopping; connect again');
    // The client left before we came to it: its close has been told already.
    if (response.closed) return;
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      // Proxies must neither keep it, nor compress it, nor wait for its end.
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    });
    response.on('error', () => undefined);
    const stream = new EventStream(response, caller, this.feed, lastEventId, () =>
      this.log.warn('events.reader_dropped', { caller: caller.kind }),
    );
    this.open.add(stream);
    const unlisten = this.feed.listen(stream.position, () => stream.send());
    const unwatch = this.lifetime.watch(caller, () => stream.end());
    response.once('close', () => {
      unwatch();
      unlisten();
      this.open.delete(stream);
    });
    this.heartbeat ??= setInterval(() => this.beat(), this.settings.heartbeatMs).unref();
    // What was looked at for others is there already.
    stream.send();
  }

  onModuleDestroy(): void {
    this.isStopping = true;
    clearInterval(this.heartbeat);
    for (const stream of this.open) stream.end();
  }

  private beat(): void {
    if (this.open.size === 0) {
      clearInterval(this.heartbeat);
      this.heartbeat = undefined;
    }
    for (const stream of this.open) stream.beat(this.settings.patience);
  }
}
