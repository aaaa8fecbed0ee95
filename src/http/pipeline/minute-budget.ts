import { MemoryStore, type Options } from 'express-rate-limit';

const WINDOW_MS = 60_000;

/**
 * How often each key may do something in a minute, which begins with its first use. The library counts; this keeps the
 * `capacity` keys that were used last, so that a storm of addresses costs a bounded amount of memory. Whoever has more of
 * them than that gains nothing by being forgotten.
 */
export class MinuteBudget {
  private readonly store = new MemoryStore();
  /** Least recently used first. */
  private readonly keys = new Set<string>();

  /** @param limit 0 = none: nothing is counted */
  constructor(
    readonly limit: number,
    private readonly capacity: number,
  ) {
    // The store needs nothing else of a limiter's options.
    this.store.init({ windowMs: WINDOW_MS } as Options);
  }

  get size(): number {
    return this.keys.size;
  }

  /** Whether the key has been used, in this minute or an earlier one, and is still kept. */
  has(key: string): boolean {
    return this.keys.has(key);
  }

  /** Undefined when this use is within the budget; otherwise in how many whole seconds there is room again. */
  async take(key: string): Promise<number | undefined> {
    if (this.limit === 0) return undefined;
    await this.keep(key);
    const { totalHits, resetTime } = await this.store.increment(key);
    if (totalHits <= this.limit) return undefined;
    // What was refused has used nothing, so that giving back makes room.
    await this.store.decrement(key);
    return Math.max(1, Math.ceil(((resetTime?.getTime() ?? 0) - Date.now()) / 1_000));
  }

  /** As if one use of the current minute had not been. */
  async giveBack(key: string): Promise<void> {
    if (this.keys.has(key)) await this.store.decrement(key);
  }

  async forget(key: string): Promise<void> {
    this.keys.delete(key);
    await this.store.resetKey(key);
  }

  /** Ends the store's timer. */
  close(): void {
    this.store.shutdown();
  }

  private async keep(key: string): Promise<void> {
    this.keys.delete(key);
    this.keys.add(key);
    const [oldest] = this.keys;
    if (this.keys.size > this.capacity && oldest !== undefined) await this.forget(oldest);
  }
}
