import { expect, it } from '@jest/globals';
import type { Response } from 'express';
import { Deadline } from '../../src/common/deadline.js';
import { End, type EndSignal } from '../../src/common/end-signal.js';
import { TemporarilyUnavailableError } from '../../src/common/domain-error.js';
import { Arrivals } from '../../src/http/pipeline/arrivals.js';
import type { PipelineRequest } from '../../src/http/pipeline-request.js';
import { until } from '../support/until.js';

/** More than may be begun in one turn of the event loop. */
const LONG_MS = 12;

/** What came of requests that arrive at a door. */
class Door {
  readonly begun: string[] = [];
  readonly refused: string[] = [];
  private readonly arrivals = new Arrivals();

  arrive(name: string, options: { path?: string; budgetMs?: number; takesMs?: number; gone?: EndSignal } = {}): void {
    const request = {
      path: options.path ?? '/api/v1/tasks',
      deadline: Deadline.after(options.budgetMs ?? 60_000),
      callerGone: options.gone ?? new End(),
    } as PipelineRequest;
    this.arrivals.middleware(request, {} as Response, (error?: unknown) => {
      if (error === undefined) this.begun.push(name);
      else if (error instanceof TemporarilyUnavailableError) this.refused.push(name);
      keepBusy(options.takesMs ?? 0);
    });
  }
}

function keepBusy(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

it('BUDGET: whoever arrives when much has been begun in this turn is let in later, in order, and everybody is', async () => {
  const door = new Door();
  const names = Array.from({ length: 200 }, (_, index) => `caller ${index}`);
  for (const [index, name] of names.entries()) door.arrive(name, { takesMs: index === 0 ? LONG_MS : 0 });
  expect(door.begun).toEqual(['caller 0']);
  await until(() => door.begun.length === names.length);
  expect(door.begun).toEqual(names);
  expect(door.refused).toEqual([]);
});

it('BUDGET: who finds others waiting for too long is refused at once, and those others are served', async () => {
  const door = new Door();
  door.arrive('first', { takesMs: LONG_MS });
  door.arrive('second');
  keepBusy(LONG_MS);
  door.arrive('third', { budgetMs: LONG_MS });
  expect(door.refused).toEqual(['third']);
  await until(() => door.begun.length === 2);
  expect(door.begun).toEqual(['first', 'second']);
});

it('BUDGET: who has waited for all of its budget is refused without being begun', async () => {
  const door = new Door();
  door.arrive('first', { takesMs: LONG_MS });
  door.arrive('second', { budgetMs: LONG_MS });
  keepBusy(2 * LONG_MS);
  await until(() => door.refused.length === 1);
  expect([door.begun, door.refused]).toEqual([['first'], ['second']]);
});

it('BUDGET: health is asked past those who wait, and who has gone meanwhile is not begun', async () => {
  const door = new Door();
  const leaving = new AbortController();
  door.arrive('first', { takesMs: LONG_MS });
  door.arrive('leaving', { gone: leaving.signal });
  door.arrive('last');
  door.arrive('supervisor', { path: '/health/live' });
  expect(door.begun).toEqual(['first', 'supervisor']);
  leaving.abort();
  await until(() => door.begun.includes('last'));
  expect([door.begun, door.refused]).toEqual([['first', 'supervisor', 'last'], []]);
});
