import { Gauge, type Registry } from 'prom-client';

/**
 * A gauge that is read when it is scraped. Scrapes that overlap share one read, and one that fails leaves the sample out:
 * a database that is away must not take the other metrics with it, and an old number would hide that it is.
 */
export function scrapedGauge(
  registry: Registry,
  named: { readonly name: string; readonly help: string },
  read: () => Promise<number>,
): void {
  let reading: Promise<number | undefined> | undefined;
  new Gauge({
    ...named,
    registers: [registry],
    async collect() {
      reading ??= read()
        .catch(() => undefined)
        .finally(() => (reading = undefined));
      const value = await reading;
      if (value === undefined) this.remove();
      else this.set(value);
    },
  });
}
