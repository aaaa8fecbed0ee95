import { Injectable } from '@nestjs/common';
import type { DomainEvent } from './domain-event.js';

export type EventListener = (event: DomainEvent) => void;

/**
 * What has been committed, told to whoever listens in this process. Events are hints, the rows are the truth:
 * publish only after the transaction has returned, and never rely on one having been heard.
 */
@Injectable()
export class EventBus {
  private readonly listeners = new Set<EventListener>();

  /** Listeners run at once and in order; they must not throw and must not wait. */
  publish(events: readonly DomainEvent[]): void {
    for (const event of events) {
      for (const listener of this.listeners) listener(event);
    }
  }

  /** @returns ends the subscription */
  subscribe(listener: EventListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
