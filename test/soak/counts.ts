/** What has been done, by name. Every name is there from the start, so that one that never happened is seen. */
export class Counts {
  private readonly counts = new Map<string, number>();

  constructor(names: readonly string[]) {
    for (const name of names) this.counts.set(name, 0);
  }

  add(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  of(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  entries(): readonly (readonly [string, number])[] {
    return [...this.counts];
  }
}
