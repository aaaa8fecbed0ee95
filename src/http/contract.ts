import { applyDecorators, HttpCode, SetMetadata } from '@nestjs/common';
import type { TSchema } from 'typebox';
import type { DomainErrorCode } from '../common/domain-error.js';
import type { ObjectSchema } from '../common/input/field-rules.js';
import type { InputClass } from '../common/input/fields.js';

/** What an id names; the features say who may see it ({@link AccessPolicies}). */
export type AccessKind = 'workspace' | 'task' | 'session' | 'turn' | 'bundle';

/** Where the id comes from. An optional one that is absent or `''` names nothing and is not checked. */
export type IdSource = { readonly param: string } | { readonly body: string; readonly optional?: boolean };

/**
 * Who may call, decided before the input is looked at.
 *
 * - `open`: anybody, without a token. The handler has no caller.
 * - `identified`: any caller. `agents: false` refuses agent identities with 403, before any look-up.
 * - a kind: a caller that may see the thing named by the id; foreign and missing are one 404 (A3). `users: false`
 *   refuses user identities like agents (the in-session MCP surface).
 */
export type Access =
  | { readonly kind: 'open' }
  | { readonly kind: 'identified'; readonly agents: boolean }
  | { readonly kind: AccessKind; readonly from: IdSource; readonly agents: boolean; readonly users?: false };

export interface Success {
  readonly status: 200 | 201 | 202 | 204;
  readonly description: string;
  readonly schema?: TSchema;
  readonly example?: unknown;
  /** Where the body is not JSON, e.g. `text/plain`. */
  readonly contentType?: string;
}

/** A refusal in the words of another protocol (MCP's own JSON-RPC errors), beside those of ours under its status. */
export interface ProtocolError {
  readonly status: 400 | 406 | 409;
  readonly description: string;
  readonly schema: TSchema;
  readonly example: unknown;
}

/** A body that the domain validates itself; the schema is for the documentation. */
export interface DescribedBody {
  readonly schema: ObjectSchema;
}

export interface Contract {
  readonly summary: string;
  readonly description?: string;
  readonly tag?: string;
  readonly access: Access;
  /**
   * Absent: a closed empty object. `raw`: the handler checks the parsed JSON itself (MCP). A schema: the
   * domain checks the body after access, by rules of which the schema shows the shape.
   */
  readonly body?: InputClass | DescribedBody | 'raw';
  readonly bodyExample?: unknown;
  readonly query?: InputClass;
  /** Whether a request with this (valid) query is held open until something happens: those are counted. */
  holds?(this: void, query: object): boolean;
  /** The first is the usual one and sets the status; a handler that may answer another way sets it itself. */
  readonly success: Success | readonly Success[];
  /** What a 503 says wherever the budget runs out, authentication included. Default: a sentence for all routes. */
  readonly unavailable?: string;
  /** Beyond what access implies, each with a sentence that a caller may meet here; for what is implied, a better one. */
  readonly errors?: Readonly<Partial<Record<DomainErrorCode, string>>>;
  readonly protocolErrors?: readonly ProtocolError[];
}

const CONTRACT = Symbol('clarion:contract');

/** Every handler has one: the single source for access, input validation and OpenAPI. The start fails without. */
export function Contract(contract: Contract): MethodDecorator {
  return applyDecorators(SetMetadata(CONTRACT, contract), HttpCode(successesOf(contract)[0]?.status ?? 200));
}

export function contractOf(handler: object): Contract | undefined {
  return Reflect.getMetadata(CONTRACT, handler) as Contract | undefined;
}

export function successesOf(contract: Contract): readonly Success[] {
  return 'status' in contract.success ? [contract.success] : contract.success;
}
