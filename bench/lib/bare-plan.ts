import type { Engine } from '../../src/persistence/dialect.js';
import type { Json } from './http-client.js';
import type { Settings } from './probed-process.js';
import type { Plan } from './recording.js';

/** What the bare server is told in a file. */
export interface BareInstructions {
  readonly engine: Engine;
  readonly databaseUrl: string;
  readonly poolSize: number;
  /** What the product has set on its connections. */
  readonly settings: Settings;
  /** By kind of answer. */
  readonly plans: Readonly<Record<string, BarePlan>>;
}

export interface BarePlan extends Plan {
  /** What the product replied, in which `{pending}` stands for the bundle. */
  readonly reply: Json;
  /** And what the waiting agent got. */
  readonly waited?: Json;
}

/** A bundle that the bare server will be asked about, as a test tells it beforehand. */
export interface BareBundle {
  readonly pendingId: string;
  readonly ids: readonly string[];
  readonly kind: string;
}
