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
  readonly include: (crossing: string) => boolean;
  /** Each in a process of its own, which kills itself; otherwise many die with one process. */
  readonly alone: boolean;
  readonly boundMs: number;
}

/** Starting a process costs as much as forty servers in it. A PostgreSQL may have no more than 100 connections. */
const IN_ONE_PROCESS: Readonly<Record<Engine, number>> = { sqlite: 40, postgres: 20 };

/** The tests of every crash on one database, inside a suite of the caller's. */
export function itSurvivesCrashes(engine: TestEngine, options: CrashOptions): void {
  const together = IN_ONE_PROCESS[engine.name];
  const cases = CRASH_CASES.map((of, index) => ({ of, ...victimsOf(of, `${index}`, options.include) }));
  const killed = cases.flatMap(({ victims }) => victims);
  const clean = cases.map((each) => each.clean);
  const addresses = new Map<Victim, string>();
  let second: readonly CrashServers[];

  beforeAll(async () => {
    for (const victim of [...killed, ...clean]) victim.databaseUrl = await engine.createUrl();
    const groups = options.alone
      ? [...groupsOf(clean, together), ...groupsOf(killed, 1)]
      : groupsOf([...clean, ...killed].sort(recoveriesLast), together);
    for (const group of groups) await killAtCrossings(group);
    second = await openAll(killed, addresses, together);
  }, options.boundMs);

  afterAll(() => endChildren());

  describe.each(cases)('$of.name', ({ of, victims, clean: undisturbed }) => {
    it('crosses in a clean run exactly what is listed', () => {
      expect(inOrder(undisturbed.crossed ?? [])).toEqual(inOrder(Object.keys(of.crossings)));
    });

    it.each(victims)('killed at "$stopAt": $expected', async (victim) => {
      await new ExpectedResults(addresses.get(victim) ?? '', victim).expect(victim.expected);
    });
  });

  it(
    'a further start changes nothing more',
    async () => {
      await Promise.all(second.map((servers) => servers.kill()));
      const left = await rowsOf(killed);
      const third = await openAll(killed, addresses, together);
      await Promise.all(third.map((servers) => servers.kill()));
      expect(await rowsOf(killed)).toEqual(left);
    },
    options.boundMs,
  );
}

function victimsOf(of: CrashCase, id: string, include: CrashOptions['include']) {
  const stops = Object.entries(of.crossings).filter(([crossing]) => include(crossing));
  const victims = stops.map(([stopAt, expected], stop): Victim => {
    return { id: `${id}.${stop}`, of, stopAt, expected, databaseUrl: '' };
  });
  const clean: Victim = { id: `${id}.clean`, of, stopAt: '', expected: 'answerable', databaseUrl: '' };
  return { victims, clean };
}

/** Two replies are written independently of each other. */
function inOrder(crossings: readonly string[]): string[] {
  const isReply = (crossing: string): boolean => crossing.startsWith('reply');
  return [...crossings.filter((crossing) => !isReply(crossing)), ...crossings.filter(isReply).sort()];
}

/** They have two processes killed, so that not every group should hold one. */
function recoveriesLast(one: Victim, other: Victim): number {
  const isRecovery = (victim: Victim): number => (victim.of.killedBefore === undefined ? 0 : 1);
  return isRecovery(one) - isRecovery(other);
}

async function openAll(
  victims: readonly Victim[],
  addresses: Map<Victim, string>,
  together: number,
): Promise<CrashServers[]> {
  const started: CrashServers[] = [];
  for (const group of groupsOf(victims, together)) {
    const servers = new CrashServers();
    started.push(servers);
    for (const victim of group) {
      servers.open(victim.id, envOf(victim.databaseUrl));
      addresses.set(victim, await servers.opened(victim.id));
    }
  }
  return started;
}

async function rowsOf(victims: readonly Victim[]): Promise<SessionRows[]> {
  const rows: SessionRows[] = [];
  for (const { databaseUrl } of victims) rows.push(await sessionRows(databaseUrl));
  return rows;
}

function groupsOf<T>(all: readonly T[], size: number): T[][] {
  const groups: T[][] = [];
  for (let start = 0; start < all.length; start += size) groups.push(all.slice(start, start + size));
  return groups;
}
