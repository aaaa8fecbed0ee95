import { UsageError } from './cli-error.js';

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** Beyond any use, and far inside what a date can hold. */
const MAX_MS = 36_500 * UNIT_MS.d;

/** Milliseconds of `90m`, `12h` or `30d`. */
export function parseLifetime(text: string): number {
  const [, digits, unit] = /^([1-9][0-9]{0,7})([mhd])$/.exec(text) ?? [];
  const lifetime = digits === undefined ? NaN : Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (lifetime <= MAX_MS) return lifetime;
  throw new UsageError(
    `--expires must be whole minutes, hours or days, such as 90m, 12h or 30d, up to 36500d, not "${text}"`,
  );
}
