import { percent, type FuzzRow } from './fuzz.js';

/** One line a target: cases, share past validation, and what they came to. */
export function tableOf(rows: readonly FuzzRow[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  return rows
    .map(({ name, cases, pastValidation, outcomes }) => {
      const told = [...outcomes]
        .sort(([a], [b]) => a.localeCompare(b))
        .map(([outcome, count]) => `${outcome}: ${count}`)
        .join(', ');
      const share = percent(pastValidation / Math.max(1, cases));
      return `${name.padEnd(width)} ${String(cases).padStart(6)} ${share.padStart(6)}  ${told}`;
    })
    .join('\n');
}
