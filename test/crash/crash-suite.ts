import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { endChildren } from '../support/child.js';
import type { Engine } from '../../src/persistence/dialect.js';
import type { TestEngine } from '../support/engines.js';
import { CrashServers } from './crash-servers.js';
import { ExpectedResults } from './expected-results.js';
import { CRASH_CASES, type CrashCase } from './hand-overs.js';
import { sessionRows, type SessionRows } from './session-rows.js';
import { envOf, killAtCrossings, type Victim } from './victim.js';

export interface CrashOptions {
  /** Which of the crossings. */
  readonly include: (crossing: string, of: CrashCase) => boolean;
  /** Each in a process of its own, which kills itself; otherwise many die with one process. */
  readonly alone: boolean;
  readonly boundMs: number;
}

/**
 * How many servers live at a time. Starting a process costs as much as forty servers in it; but a PostgreSQL may have no
 * more than 100 connections.
 */
const AT_A_TIME: Readonly<Record<Engine, number>> = { sqlite: 1000, postgres: 24 };

/** The tests of every crash on one database, inside a suite of the caller's. */
export function itSurvivesCrashes(engine: TestEngine, options: CrashOptions): void {
  const cases = CRASH_CASES.map((of, index) => ({ of, ...victimsOf(of, `${index}`, options.include) }));
  for (const [index, part] of partsOf(cases, AT_A_TIME[engine.name]).entries()) {
    describe(`part ${index + 1}`, () => itSurvives(part, engine, options));
  }
}

function itSurvives(cases: readonly Killed[], engine: TestEngine, options: CrashOptions): void {
  const killed = cases.flatMap(({ victims }) => victims);
  const clean = cases.map((each) => each.clean);
  const addresses = new Map<Victim, string>();
  let second: CrashServers;

  beforeAll(async () => {
    for (const victim of [...killed, ...clean]) victim.databaseUrl = await engine.createUrl({ isKept: true });
    const groups = options.alone ? [clean, ...killed.map((victim) => [victim])] : [[...clean, ...killed]];
    for (const group of groups) await killAtCrossings(group);
    second = await openAll(killed, addresses);
  }, options.boundMs);

  afterAll(async () => {
    await endChildren();
    for (const { agent } of [...killed, ...clean]) await agent?.close();
  });

  describe.each(cases)('$of.name', ({ of, victims, clean: undisturbed }) => {
    it('crosses in a clean run exactly what is listed', () => {
      // What it did cross says more than that it did not come to an end.
      if (undisturbed.crossed === undefined) throw undisturbed.trouble ?? new Error('it was never run');
      const isRecovery = of.killedBefore !== undefined;
      expect(inOrder(undisturbed.crossed, isRecovery)).toEqual(inOrder(Object.keys(of.crossings), isRecovery));
    });

    it.each(victims)('killed at "$stopAt": $expected', async (victim) => {
      if (victim.trouble !== undefined) throw victim.trouble;
      await new ExpectedResults(addresses.get(victim) ?? '', victim).expect(victim.expected);
    });
  });

  it(
    'a further start changes nothing more',
    async () => {
      await second.kill();
      const left = await rowsOf(killed);
      const third = await openAll(killed, addresses);
      await third.kill();
      expect(await rowsOf(killed)).toEqual(left);
    },
    options.boundMs,
  );
}

interface Killed {
  readonly of: CrashCase;
  readonly victims: readonly Victim[];
  readonly clean: Victim;
}

function victimsOf(of: CrashCase, id: string, include: CrashOptions['include']): Omit<Killed, 'of'> {
  const stops = Object.entries(of.crossings).filter(([crossing]) => include(crossing, of));
  const victims = stops.map(([stopAt, expected], stop): Victim => {
    return { id: `${id}.${stop}`, of, stopAt, expected, databaseUrl: '' };
  });
  const clean: Victim = { id: `${id}.clean`, of, stopAt: '', expected: 'answerable', databaseUrl: '' };
  return { victims, clean };
}

/** Apart what goes on independently: two replies of each other, and calls of what recovery is doing meanwhile. */
function inOrder(crossings: readonly string[], isRecovery: boolean): readonly string[][] {
  const isReply = (name: string): boolean => name.startsWith('reply');
  const isCall = (name: string): boolean => isRecovery && /^(call|dispatch)/.test(name);
  return [
    crossings.filter((name) => !isReply(name) && !isCall(name)),
    crossings.filter(isCall),
    crossings.filter(isReply).sort(),
  ];
}

async function openAll(victims: readonly Victim[], addresses: Map<Victim, string>): Promise<CrashServers> {
  const servers = new CrashServers();
  for (const victim of victims) {
    servers.open(victim.id, envOf(victim.databaseUrl));
    addresses.set(victim, await servers.opened(victim.id));
  }
  return servers;
}

async function rowsOf(victims: readonly Victim[]): Promise<SessionRows[]> {
  const rows: SessionRows[] = [];
  for (const { databaseUrl } of victims) rows.push(await sessionRows(databaseUrl));
  return rows;
}

/** Whole cases, as many as may live at a time. */
function partsOf(cases: readonly Killed[], most: number): Killed[][] {
  const parts: Killed[][] = [];
  let count = most;
  for (const each of cases) {
    const more = each.victims.length + 1;
    count += more;
    if (count > most) {
      parts.push([]);
      count = more;
    }
    parts.at(-1)?.push(each);
  }
  return parts;
}
