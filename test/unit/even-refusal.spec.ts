import { expect, it } from '@jest/globals';
import { untilEvenStep } from '../../src/common/even-refusal.js';

it.each([
  { spent: 0, left: 5 },
  { spent: 0.25, left: 4.75 },
  { spent: 4.75, left: 0.25 },
  { spent: 5, left: 0 },
  { spent: 5.5, left: 4.5 },
  { spent: 1_003, left: 2 },
  { spent: -3, left: 5 },
])('A3: after $spent ms a refusal is held back for $left ms', ({ spent, left }) => {
  expect(untilEvenStep(1_000, 1_000 + spent)).toBe(left);
});
