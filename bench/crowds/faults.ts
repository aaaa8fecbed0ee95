import type { Reply } from './rest-load.js';

const SHOWN = 5;

/** What must not be, counted by kind. */
export class Faults {
  private readonly counts = new Map<string, number>();

  add(fault: string): void {
    this.counts.set(fault, (this.counts.get(fault) ?? 0) + 1);
  }

  /** A fault unless the reply has the status. @returns whether it has */
  expect(reply: Reply, status: number, what: string): boolean {
    if (reply.status === status) return true;
    const said = reply.body['code'] ?? reply.body['error'];
    const code = reply.status === 0 ? 'no reply' : String(reply.status);
    this.add(`${what} gave ${code}${typeof said === 'string' ? ` ${said}` : ''}`);
    return false;
  }

  list(): readonly string[] {
    const all = [...this.counts].map(([fault, count]) => (count === 1 ? fault : `${fault} (${count} times)`));
    return all.length <= SHOWN ? all : [...all.slice(0, SHOWN), `and ${all.length - SHOWN} kinds more`];
  }
}
