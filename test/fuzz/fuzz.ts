import { createHash } from 'node:crypto';
import fc from 'fast-check';
import type { FuzzCase, Target } from './cases.js';
import { mcpHabits, toolTarget, type PublishedTool, type Surface } from './mcp-cases.js';
import { HUNG, ReplyChecks } from './replies.js';
import { routesOf, routeTarget, type OpenApi } from './rest-cases.js';
import { readPublished } from './published.js';
import { FuzzWorld, type FuzzUser } from './world.js';
import { commandOf, Wire, type WireReply } from './wire.js';

export interface FuzzOptions {
  readonly url: string;
  readonly users: readonly [FuzzUser, FuzzUser];
  /** Accepts every call. */
  readonly webhookUrl: string;
  /** Of each route and tool. */
  readonly cases: number;
  readonly seed: number;
  /** Of these names alone, as the table has them. */
  readonly only?: readonly string[];
  /** No whole reply within so many milliseconds is a hang. Default 60,000: twelve times what anything may take. */
  readonly deadlineMs?: number;
  /** How many targets at once. Default 24: waiting for each other, not for the machine. */
  readonly lanes?: number;
  readonly onTarget?: (row: FuzzRow) => void;
}

/** What became of the cases of one target. */
export interface FuzzRow {
  readonly name: string;
  cases: number;
  pastValidation: number;
  readonly outcomes: Map<string, number>;
}

export interface FuzzReport {
  readonly rows: readonly FuzzRow[];
  /** Each once, with what to repeat. */
  readonly faults: readonly string[];
  readonly told: FuzzWorld['told'];
}

/** Below that share the cases are too wild to mean anything. */
const LEAST_SHARE = 0.3;
/** From so many cases on; fewer may by chance have half of it, and a handful any. */
const ENOUGH_CASES = 200;
const HANDFUL = 20;

const DEADLINE_MS = 60_000;
const LANES = 24;
/** Of one target: beyond, its faults are likely to be one. */
const MOST_FAULTS = 5;
const MOST_SHRINKS = 150;

/** Sends cases for everything that a running server publishes, and judges what comes back. */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const wire = new Wire(options.url, options.deadlineMs ?? DEADLINE_MS);
  const world = new FuzzWorld(wire, options.users, options.webhookUrl);
  try {
    await world.settle();
    const { document, tools } = await readPublished(world, wire);
    const checks = new ReplyChecks(document, [...tools.external, ...tools.session], world);
    const targets = targetsOf(document, tools).filter(({ name }) => options.only?.includes(name) ?? true);
    const unknown = options.only?.filter((name) => !targets.some((target) => target.name === name)) ?? [];
    if (unknown.length > 0) throw new UnknownTargetError(unknown, targetsOf(document, tools));
    const runs = targets.map((target) => new TargetRun(target, options, wire, world, checks));
    // What reads goes first: some lists have no pages, and grow with what the others make.
    const left = [...runs].sort((a, b) => Number(a.isWriting) - Number(b.isWriting));
    const lane = async (): Promise<void> => {
      for (let run = left.shift(); run !== undefined; run = left.shift()) {
        await run.run();
        options.onTarget?.(run.row);
      }
    };
    await Promise.all(Array.from({ length: options.lanes ?? LANES }, lane));
    return { rows: runs.map((run) => run.row), faults: runs.flatMap((run) => run.allFaults), told: world.told };
  } finally {
    wire.close();
  }
}

export class UnknownTargetError extends Error {
  constructor(names: readonly string[], targets: readonly Target[]) {
    super(`there is no ${names.join(', ')}; there are:\n${targets.map(({ name }) => name).join('\n')}`);
  }
}

function targetsOf(document: OpenApi, tools: Readonly<Record<Surface, readonly PublishedTool[]>>): Target[] {
  return [
    ...routesOf(document).map(({ method, path, operation }) =>
      routeTarget(method, path, operation, path.startsWith('/mcp') ? mcpHabits(method, path, tools) : {}),
    ),
    ...(['external', 'session'] as const).flatMap((surface) => tools[surface].map((tool) => toolTarget(surface, tool))),
  ];
}

interface Found {
  readonly fault: string;
  readonly command: string;
  readonly said: string;
}

class TargetRun {
  readonly row: FuzzRow;
  private readonly known = new Map<string, Found>();

  constructor(
    private readonly target: Target,
    private readonly options: FuzzOptions,
    private readonly wire: Wire,
    private readonly world: FuzzWorld,
    private readonly checks: ReplyChecks,
  ) {
    this.row = { name: target.name, cases: 0, pastValidation: 0, outcomes: new Map() };
  }

  get isWriting(): boolean {
    return /^(POST|PATCH|DELETE) \/api/.test(this.target.name);
  }

  get allFaults(): string[] {
    const { name, cases, pastValidation } = this.row;
    const share = pastValidation / Math.max(1, cases);
    return [
      ...[...this.known.values()].map(({ fault, command, said }) => `${name}: ${fault}\n  ${command}\n  → ${said}`),
      ...(share < leastShareOf(cases) ? [`${name}: only ${percent(share)} of its cases got past validation`] : []),
    ];
  }

  /** All cases; what is found goes on with the rest, until too much is, or each one costs a deadline. */
  async run(): Promise<void> {
    const { cases, seed } = this.options;
    while (this.row.cases < cases && this.known.size < MOST_FAULTS && !this.known.has(HUNG)) {
      // Another one for each target, or all would get the same odd paths.
      const found = await this.part(cases - this.row.cases, hash(`${seed} ${this.row.name} ${this.row.cases}`));
      if (found !== undefined) this.known.set(found.fault, found);
    }
  }

  /** Ends at the first new fault, with the smallest case that shows it. */
  private async part(cases: number, seed: number): Promise<Found | undefined> {
    const state: { smallest?: Found } = {};
    let shrinks = 0;
    const holds = async (fuzzCase: FuzzCase): Promise<boolean> => {
      const { smallest } = state;
      // Shrinking ends where everything smaller holds.
      if (smallest !== undefined && (shrinks += 1) > MOST_SHRINKS) return true;
      const found = await this.tryOne(fuzzCase, smallest === undefined);
      if (found === undefined || this.known.has(found.fault)) return true;
      if (smallest !== undefined && found.fault !== smallest.fault) return true;
      state.smallest = found;
      // Each smaller one would take as long again.
      if (found.fault === HUNG) shrinks = MOST_SHRINKS;
      return false;
    };
    await fc.check(fc.asyncProperty(this.target.cases, holds), { numRuns: cases, seed });
    return state.smallest;
  }

  private async tryOne(fuzzCase: FuzzCase, counts: boolean): Promise<Found | undefined> {
    const { target, row } = this;
    const sent = await this.world.prepare(fuzzCase);
    const request = { ...sent.request, isOpenEnded: target.isOpenEnded };
    const reply = await this.wire.send(request);
    this.world.learn(sent, reply);
    const verdict = this.checks.judge(sent, reply, target.tool);
    if (counts) {
      row.cases += 1;
      if (verdict.isPastValidation) row.pastValidation += 1;
      row.outcomes.set(verdict.outcome, (row.outcomes.get(verdict.outcome) ?? 0) + 1);
    }
    if (verdict.fault === undefined) return undefined;
    return { fault: verdict.fault, command: commandOf(this.options.url, sent.request), said: saidIn(reply) };
  }
}

function saidIn(reply: WireReply): string {
  if (reply.kind !== 'reply') return reply.kind;
  return `${reply.status} ${reply.body.toString('utf8').slice(0, 1_000)}`;
}

function hash(text: string): number {
  return createHash('sha256').update(text).digest().readInt32BE();
}

function leastShareOf(cases: number): number {
  if (cases < HANDFUL) return 0;
  return cases < ENOUGH_CASES ? LEAST_SHARE / 2 : LEAST_SHARE;
}

export function percent(share: number): string {
  return `${Math.floor(share * 100)} %`;
}
