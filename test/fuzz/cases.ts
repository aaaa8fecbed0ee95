import fc, { type Arbitrary } from 'fast-check';
import type { Body } from './mutations.js';
import type { Ref } from './ref.js';

/** Who calls, seen from the estate that the case is about. */
export type Actor = 'owner' | 'other user' | 'agent' | 'other agent' | 'nobody' | 'bad token';

/** One request, but for what differs in every run: ids, tokens, the address. */
export interface FuzzCase {
  readonly actor: Actor;
  readonly estate: { readonly isNew: boolean; readonly index: number };
  readonly method: string;
  /** Texts are sent as they are. */
  readonly path: readonly (string | Ref)[];
  /** `[name, value]` are encoded, a text is sent as it is. */
  readonly query: readonly (readonly [string, unknown])[] | string;
  /** Beside those of the caller. */
  readonly headers: readonly (readonly [string, string | Ref])[];
  readonly body: Body | undefined;
  readonly leavesAfterMs: number | undefined;
}

/** A route or a tool, and how to make cases for it. */
export interface Target {
  readonly name: string;
  readonly cases: Arbitrary<FuzzCase>;
  /** The tool that a case calls, when it is well-formed enough to call one. */
  readonly tool?: string;
  readonly isOpenEnded: boolean;
}

export type ActorWeights = Partial<Record<Actor, number>>;

export function actorsOf(weights: ActorWeights): Arbitrary<Actor> {
  return fc.oneof(
    ...Object.entries(weights).map(([actor, weight]) => ({ arbitrary: fc.constant(actor as Actor), weight })),
  );
}

export function estatesOf(newPerHundred: number): Arbitrary<FuzzCase['estate']> {
  return fc.record({
    isNew: fc.oneof(
      { arbitrary: fc.constant(false), weight: 100 - newPerHundred },
      { arbitrary: fc.constant(true), weight: newPerHundred },
    ),
    index: fc.nat(1000),
  });
}
